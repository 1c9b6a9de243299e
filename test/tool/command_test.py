#!/usr/bin/env python3
"""The onehop command from end to end: starting a job on the stand-in, looking into it, and at this machine.
command_test.py ONEHOP PLUGIN STANDIN_FOLDER"""
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import unittest

ONEHOP, PLUGIN, STANDIN = sys.argv[1:4]
RANK = str(pathlib.Path(__file__).resolve().parent / "rank.py")
DEADLINE = 120
SMALL, LARGE, BYTES = 5, 2, 256 * 4


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("NCCL_", "ONEHOP_", "CUDA_", "LD_", "VLLM_", "MALLOC_"))}
    cudart = next(pathlib.Path(STANDIN).glob("libcudart.so.*"))
    return {**kept, "LD_LIBRARY_PATH": STANDIN, "RANK_CUDART": str(cudart), "HOME": "/nonexistent", **more}


def onehop(*arguments, env=None):
    return subprocess.run([ONEHOP, *arguments], capture_output=True, text=True, timeout=DEADLINE,
                          env=env or environment())


class Job:
    """Ranks that were started with `onehop run`, and are waiting behind their last call."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="onehop-command-")
        self.ranks = [subprocess.Popen(
            [ONEHOP, "run", "--measure", "off", *options, "--", sys.executable, RANK, str(rank), "2",
             self.folder.name + "/id", str(SMALL), str(LARGE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment()) for rank in range(2)]

    def __enter__(self):
        try:
            self.wait_until_ready()
        except BaseException:
            for rank in self.ranks:
                rank.kill()
            self.__exit__()
            raise
        return self

    def wait_until_ready(self):
        for rank in self.ranks:
            if not select.select([rank.stdout], [], [], DEADLINE)[0]:
                raise AssertionError("no answer from a rank")
            line = rank.stdout.readline()
            if not line.startswith("ready "):
                raise AssertionError(line + rank.stderr.read())
            assert int(line.split()[1]) == rank.pid, "the command keeps the process id"

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.stdin.close()
        self.codes = [rank.wait(DEADLINE) for rank in self.ranks]
        self.errors = [rank.stderr.read() for rank in self.ranks]
        for rank in self.ranks:
            rank.stdout.close()
            rank.stderr.close()
        self.folder.cleanup()


class Run(unittest.TestCase):
    def check_live(self, *options):
        with Job(*options) as job:
            for rank, process in enumerate(job.ranks):
                answer = onehop("stats", str(process.pid), "--json")
                self.assertEqual(answer.returncode, 0, answer.stderr)
                statistics = json.loads(answer.stdout)
                self.assertEqual(statistics["pid"], process.pid)
                comm = statistics["communicators"][0]
                self.assertEqual((comm["state"], comm["rank"], comm["ranks"]), ("on", rank, 2))
                self.assertEqual((comm["taken"], comm["taken_bytes"]), (SMALL, SMALL * BYTES))
                self.assertEqual((comm["passed"], comm["passed_because"]["size"]), (LARGE, LARGE))
                self.assertEqual(comm["taken_with"], {"one-shot push": {"calls": SMALL, "bytes": SMALL * BYTES}})
                self.assertGreater(comm["set_up_ms"], 0)
                self.assertGreaterEqual(comm["meeting_ms"], 0)
                self.assertEqual((statistics["totals"]["taken"], statistics["totals"]["passed"]), (SMALL, LARGE))
            everyone = onehop("stats", "--all").stdout
            doctor = json.loads(onehop("doctor", "--json", "--pid", str(job.ranks[0].pid)).stdout)
            for process in job.ranks:
                self.assertIn(f"process {process.pid}: onehop", everyone)
            self.assertEqual(doctor["process"]["statistics"]["totals"]["taken"], SMALL)
            self.assertEqual([os.path.basename(path) for path in doctor["process"]["nccl"]], ["libnccl.so.2"])
            self.assertFalse({"not-loaded", "not-active", "communicator-off"} & {f["id"] for f in doctor["findings"]})
        self.assertEqual(job.codes, [7, 7], "the exit code is the command's")
        return job

    def test_a_job_is_served_and_can_be_looked_into(self):
        job = self.check_live("--algo", "oneshot")
        self.assertIn("onehop run: NCCL_NET_PLUGIN=" + PLUGIN, job.errors[0])

    def test_by_preload(self):
        self.check_live("--algo=oneshot", "--preload")

    def test_dry_run_says_what_it_would_set(self):
        answer = onehop("run", "--dry-run", "--json", "--max-bytes", "64K", "--stats", "true")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        said = json.loads(answer.stdout)
        self.assertEqual(said["set"], {"NCCL_NET_PLUGIN": PLUGIN, "ONEHOP_MAX_BYTES": "64K", "ONEHOP_STATS": "1"})
        self.assertEqual(said["libraries"][0]["path"], str(pathlib.Path(STANDIN, "libnccl.so.2").resolve()))

    def test_every_release_of_the_library_that_is_found(self):
        for version, expected in ((21805, "NCCL_NET_PLUGIN=onehop\n"), (22005, "NCCL_NET_PLUGIN=onehop\n"),
                                  (22105, f"NCCL_NET_PLUGIN={PLUGIN}\n")):
            env = environment(ONEHOP_STANDIN_NCCL_VERSION=str(version))
            self.assertIn(expected, onehop("run", "--dry-run", "true", env=env).stdout)
        env = environment(ONEHOP_STANDIN_NCCL_VERSION="22709", NCCL_NET_PLUGIN="site")
        self.assertIn(f"NCCL_NET_PLUGIN={PLUGIN},site\n", onehop("run", "--dry-run", "true", env=env).stdout)

    def test_an_unknown_release_is_left_alone(self):
        env = environment(ONEHOP_STANDIN_NCCL_VERSION="29900")
        answer = onehop("run", "sh", "-c", "echo [$NCCL_NET_PLUGIN$LD_PRELOAD]; exit 5", env=env)
        self.assertEqual((answer.returncode, answer.stdout), (5, "[]\n"))
        self.assertIn("NCCL 2.99.0 is not known", answer.stderr)
        strict = onehop("run", "--strict", "--", "echo", "ran", env=env)
        self.assertEqual((strict.returncode, strict.stdout), (125, ""))

    def test_a_sites_configuration_file_is_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("NCCL_NET_PLUGIN=site\n")
            file.flush()
            answer = onehop("run", "--dry-run", "true", env=environment(NCCL_CONF_FILE=file.name))
        self.assertIn(f"NCCL_NET_PLUGIN={PLUGIN},site\n", answer.stdout)

    def test_exit_codes_of_env(self):
        self.assertEqual(onehop("run", "/no/such/program").returncode, 127)
        self.assertEqual(onehop("run", "no-such-program").returncode, 127)
        self.assertEqual(onehop("run", "/etc/passwd").returncode, 126)
        self.assertEqual(onehop("run", "sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(onehop("run").returncode, 2)
        bad = onehop("run", "--algo", "fast", "true")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("oneshot", bad.stderr)

    def test_the_commands_own_options_are_left_to_it(self):
        answer = onehop("run", "echo", "--strict", "--", "-x")
        self.assertEqual((answer.returncode, answer.stdout), (0, "--strict -- -x\n"))
        answer = onehop("run", "--", "echo", "--json")
        self.assertEqual((answer.returncode, answer.stdout), (0, "--json\n"))


class Stats(unittest.TestCase):
    def test_of_other_processes(self):
        answer = onehop("stats", str(os.getpid()))
        self.assertEqual(answer.returncode, 1)
        self.assertIn("not active", answer.stderr)
        self.assertEqual(onehop("stats").returncode, 2)
        self.assertEqual(onehop("stats", "--all", "1").returncode, 2)


class Doctor(unittest.TestCase):
    def test_of_this_machine(self):
        answer = onehop("doctor", "--json")
        facts = json.loads(answer.stdout)
        ids = {finding["id"] for finding in facts["findings"]}
        driver = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
        has_driver = "libcuda.so.1 " in driver
        self.assertEqual("no-driver" in ids, not has_driver)
        self.assertEqual(facts["driver"]["libcuda"], has_driver)
        off = [finding for finding in facts["findings"] if finding["severity"] == "off"]
        self.assertEqual(answer.returncode, 1 if off else 0)
        library = next(l for l in facts["nccl"] if l["found_by"] == "LD_LIBRARY_PATH")
        self.assertEqual((library["version"], library["known"], library["refused"]), ("2.28.9", True, None))
        text = onehop("doctor")
        self.assertEqual(text.returncode, answer.returncode)
        for finding in facts["findings"]:
            self.assertIn(f"[{finding['id']}]", text.stdout)

    def test_of_a_machine_without_sys_and_proc(self):
        with tempfile.TemporaryDirectory() as root:
            facts = json.loads(onehop("doctor", "--json", "--root", root).stdout)
        self.assertIsNone(facts["pci"])
        self.assertIsNone(facts["system"]["virtual_machine"])

    def test_a_library_that_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libnccl.so.2").write_bytes(b"\x7fELF nothing")
            facts = json.loads(onehop("doctor", "--json", env=environment(LD_LIBRARY_PATH=folder)).stdout)
            run = onehop("run", "true", env=environment(LD_LIBRARY_PATH=folder))
        self.assertIn("nccl-broken", {finding["id"] for finding in facts["findings"]})
        self.assertEqual(run.returncode, 0)
        self.assertIn("nothing is set", run.stderr)


class Help(unittest.TestCase):
    def test_settings_and_version(self):
        self.assertIn("ONEHOP_MAX_BYTES", onehop("help", "env").stdout)
        self.assertRegex(onehop("version").stdout, r"^onehop \d+\.\d+\.\d+\n")
        json.loads(onehop("version", "--json").stdout)
        for name in set(re.findall(r"ONEHOP_(\w+)\n", onehop("help", "env").stdout)):
            self.assertIn("--" + name.lower().replace("_", "-"), onehop("run", "--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
