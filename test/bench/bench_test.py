#!/usr/bin/env python3
"""`onehop bench` as a whole, on the stand-in: it measures, checks, judges, and never hangs.

  bench_test.py ONEHOP PLUGIN STANDIN_FOLDER WRONG_NCCL
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ONEHOP, PLUGIN, STANDIN, WRONG_NCCL = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:5])
SHORT = ["--repetitions", "2", "--replays", "2", "--calls", "5", "--plugin", PLUGIN]
ENDLESS = ["--repetitions", "10000", "--replays", "2", "--calls", "5", "--plugin", PLUGIN, "--ranks", "2", "--sizes", "64",
           "--modes", "graph"]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "ONEHOP_"))}
    return {**kept, "LD_LIBRARY_PATH": STANDIN, **more}


def bench(*arguments, **variables):
    return subprocess.run([ONEHOP, "bench", *arguments], env=environment(**variables), capture_output=True, text=True, timeout=120)


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Measures(unittest.TestCase):
    def check(self, *arguments, sides=2, cases=0, **variables):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.json"
            done = bench(*arguments, "--json", str(path), **variables)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            document = json.loads(path.read_text())
        rows = document["rows"]
        self.assertEqual(len(rows), sides * cases)
        for row in rows:
            self.assertGreater(row["us"], 0)
            self.assertGreaterEqual(row["us_p99"], row["us"])
            self.assertEqual(row["wrong"], 0)
            self.assertIn(row["side"], ("nccl", "onehop"))
        for row in rows:
            if row["side"] == "onehop":
                self.assertIn(row["verdict"], ("faster", "as fast", "SLOWER"))
                # Two looks, and two with other communicators.
                self.assertIn(row["looks"], (4,) if row["verdict"] == "SLOWER" else (1, 2, 3, 4))
        self.assertEqual(document["links"], "CPU stand-in")
        self.assertIn("say nothing about GPUs", done.stdout)
        self.assertIn("all results are right", done.stdout)
        self.assertGreater(document["first_call_ms"]["nccl"], 0)
        self.assertGreater(document["set_up_ms"], 0)
        # All of it happens in that call.
        self.assertLess(document["set_up_ms"], document["first_call_ms"]["onehop"])
        if document["state"] == "on":
            self.assertIn(" of staging on each rank", done.stdout)
            self.assertTrue(4096 <= document["staging_bytes"] <= 16 << 20, document["staging_bytes"])
        else:
            self.assertEqual(document["staging_bytes"], 0)
        return document, done

    def taken(self, document):
        return {(row["bytes"], row["taken"]) for row in document["rows"] if row["side"] == "onehop"}

    def test_what_seems_slower_is_measured_with_other_communicators_too(self):
        # The stand-in's NCCL copies memory as a whole, so onehop is slower here; were it not, check() asks for nothing.
        document, done = self.check("--ranks", "2", "--sizes", "256K", "--modes", "graph,eager", *SHORT, cases=2)
        self.assertEqual(self.taken(document), {(256 << 10, True)})
        self.assertEqual("SLOWER, look 4" in done.stdout, document["slower"] > 0)
        self.assertEqual(document["not_measured"], [])

    def test_two_processes_all_modes(self):
        document, done = self.check("--ranks", "2", "--sizes", "64,4K", "--in-place", "both", *SHORT, cases=3 * 2 * 2,
                                    ONEHOP_MAX_BYTES="2K")
        self.assertEqual(self.taken(document), {(64, True), (4096, False)})
        self.assertIn("passed to NCCL", done.stdout)
        self.assertEqual({row["processes"] for row in document["rows"]}, {2})
        self.assertEqual({row.get("replayed_on") for row in document["rows"]}, {"other", "default", None})

    def test_four_processes(self):
        self.check("--ranks", "4", "--sizes", "1K", "--types", "float16,int64", *SHORT, cases=3 * 2)

    def test_four_threads_of_one_process(self):
        self.check("--ranks", "4", "--threads", "--sizes", "1K", *SHORT, cases=3)

    def test_one_thread_with_groups(self):
        self.check("--ranks", "3", "--group", "--sizes", "1K", *SHORT, cases=3)

    def test_ranks_that_share_a_gpu(self):
        document, done = self.check("--ranks", "4", "--sizes", "64,1M", *SHORT, cases=2, ONEHOP_STANDIN_DEVICES="1")
        self.assertEqual({row["processes"] for row in document["rows"]}, {1})
        self.assertIn("may not fit on one GPU at once", done.stdout)
        self.assertEqual(len(document["not_measured"]), 2)

    def test_large_calls_of_ranks_that_share_a_gpu(self):
        # Where no side has more channels than fit: rivals bring their own.
        common = ("--ranks", "4", "--sizes", "1M", "--modes", "graph", *SHORT)
        few = {"ONEHOP_STANDIN_DEVICES": "1", "NCCL_MAX_NCHANNELS": "8"}
        self.check(*common, cases=1, **few)
        done = bench(*common, "--rival", "NCCL_MAX_NCHANNELS=16", **few)
        self.assertEqual(done.returncode, 4)
        self.assertIn("may not fit on one GPU at once", done.stderr)

    def test_rivals(self):
        document, _ = self.check("--ranks", "2", "--sizes", "64", "--modes", "graph,eager", "--control", "--rival",
                                 "NCCL_PROTO=LL NCCL_ALGO=Ring", *SHORT, sides=4, cases=2)
        self.assertEqual({row["method"] for row in document["rows"] if row["side"] == "nccl"},
                         {"", "the same settings again", "NCCL_PROTO=LL NCCL_ALGO=Ring"})

    def test_stock_nccl_has_no_plugin_though_the_environment_names_it(self):
        self.check("--ranks", "2", "--sizes", "64", "--modes", "eager", *SHORT, cases=1, NCCL_NET_PLUGIN=PLUGIN,
                   LD_PRELOAD=PLUGIN)

    def test_a_communicator_that_is_off(self):
        document, done = self.check("--ranks", "2", "--sizes", "64", "--modes", "eager", *SHORT, cases=1, ONEHOP_ENABLE="0")
        self.assertEqual(self.taken(document), {(64, False)})
        self.assertIn("onehop is OFF: ONEHOP_ENABLE=0", done.stdout)


class Notices(unittest.TestCase):
    def test_wrong_results(self):
        for place in ("in", "out"):
            done = bench("--ranks", "2", "--sizes", "64", "--modes", "graph,eager", "--in-place", place, "--nccl", WRONG_NCCL, *SHORT)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            # An element of each of five calls on two ranks, and of all checks.
            self.assertRegex(done.stdout, r"WRONG.*NCCL: [1-9]\d* elements wrong; onehop: [1-9]\d* elements wrong")

    def test_broken_links(self):
        # Found at set-up: onehop is off, and says why; nothing is wrong.
        done = bench("--ranks", "2", "--sizes", "64", "--modes", "eager", *SHORT, ONEHOP_STANDIN_FAULT="flip", ONEHOP_STAGING="p2p")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("onehop is OFF", done.stdout)

    def test_bad_usage(self):
        for arguments in (["--sizes", "4Q"], ["--modes", "fast"], ["--types", "float31"], ["--rival", "LL"], ["--ranks", "1"],
                          ["--sizes", "64", "--decode"], ["--nothing"]):
            self.assertEqual(bench(*arguments).returncode, 2, arguments)

    def test_no_nccl(self):
        done = bench("--sizes", "64", "--nccl", "/nowhere/libnccl.so.2")
        self.assertEqual(done.returncode, 4)
        self.assertIn("/nowhere/libnccl.so.2", done.stderr)

    def test_no_plugin(self):
        done = bench("--sizes", "64", "--plugin", "/nowhere/plugin.so")
        self.assertEqual(done.returncode, 4)
        self.assertIn("no such plugin: /nowhere/plugin.so", done.stderr)

    def test_a_plugin_that_is_none(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as empty:
            done = bench("--ranks", "2", "--sizes", "64", "--plugin", empty.name)
        self.assertEqual(done.returncode, 4)
        self.assertIn("NCCL did not load the plugin", done.stderr)


class Endless(unittest.TestCase):
    """A run that would go on for minutes, and what is done to one of its processes."""

    def start(self, *more):
        self.process = subprocess.Popen([ONEHOP, "bench", *ENDLESS, *more], env=environment(), text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Both sides of two ranks, and at work: the process that looked around is gone.
        wait_until(lambda: len(children(self.process.pid)) == 4, 60, "four processes")
        self.children = children(self.process.pid)

    def tearDown(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def ends(self, code, *parts):
        _, messages = self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, code, messages)
        for part in parts:
            self.assertIn(part, messages)
        wait_until(lambda: all(is_gone(child) for child in self.children), 10, "all processes gone")

    def test_a_killed_rank(self):
        self.start()
        time.sleep(1)
        os.kill(self.children[3], signal.SIGKILL)
        self.ends(4, "rank 1", "Killed", "(onehop)")

    def test_a_rank_that_does_not_answer(self):
        self.start("--deadline", "6")
        time.sleep(1)
        os.kill(self.children[1], signal.SIGSTOP)
        self.ends(4, "not finished after 6 s", "rank 1", "(NCCL)")

    def test_the_command_itself_is_killed(self):
        self.start()
        self.process.kill()
        self.process.communicate(timeout=60)
        wait_until(lambda: all(is_gone(child) for child in self.children), 10, "all processes gone")


class Interrupted(unittest.TestCase):
    def test_an_interrupt_keeps_what_is_measured(self):
        # A terminal sends it to all processes.
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.json"
            for seconds in (1, 2, 4, 8, 16):
                process = subprocess.Popen(
                    [ONEHOP, "bench", *SHORT, "--ranks", "2", "--sizes", ",".join(["64"] * 5000), "--modes", "graph", "--json", str(path)],
                    env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
                wait_until(lambda: len(children(process.pid)) == 4, 60, "four processes")
                time.sleep(seconds)
                os.killpg(process.pid, signal.SIGINT)
                table, messages = process.communicate(timeout=60)
                if path.exists():
                    break
            self.assertEqual(process.returncode, 4, messages)
            self.assertIn("interrupted", messages)
            self.assertIn("of 5000 cases: interrupted", table)
            document = json.loads(path.read_text())
        self.assertGreater(len(document["rows"]), 0)
        self.assertEqual(len(document["rows"]) % 2, 0)
        self.assertRegex(document["not_measured"][-1], "the last [0-9]+ of 5000 cases: interrupted")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
