#!/usr/bin/env python3
"""`onehop tune` from end to end on the CPU stand-in. usage: tune_test.py BUILD_FOLDER [TEST...]"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
PLUGIN = BUILD / "plugin" / "libnccl-net-onehop.so"
DEADLINE = 120
# Whatever the times, methods are chosen; and nothing is tried of NCCL's settings, but where that is what is tested.
LEAST = ["--effort", "least", "--margin", "1000", "--no-rivals"]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "CUDA_", "ONEHOP_"))}
    return {**kept, "LD_LIBRARY_PATH": str(BUILD / "test" / "standin"), **more}


def key(step):
    return step["round"], step["bytes"], step["method"], step.get("blocks"), step.get("workers")


class Tune(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="onehop-tune-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.plan = self.folder / "plan.json"
        self.state = self.folder / "plan.json.state"

    def command(self, *options, ranks=2, out=None, least=LEAST):
        return [str(BUILD / "tools" / "onehop"), "tune", "--ranks", str(ranks), "--out", str(out or self.plan), *least, *options]

    def tune(self, *options, code=0, env=None, **arguments):
        done = subprocess.run(self.command(*options, **arguments), env=environment(**(env or {})), capture_output=True,
                              text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def steps(self, state=None):
        return json.loads((state or self.state).read_text())["steps"]

    def run_job(self, ranks, **more):
        """The example job under the plan; what the first rank's log says."""
        env = environment(NCCL_NET_PLUGIN=str(PLUGIN), ONEHOP_PLAN=str(self.plan), **more)
        ids = self.folder / f"id{time.monotonic_ns()}"
        jobs = [subprocess.Popen([str(BUILD / "tools" / "job" / "onehop-job"), "--rank", str(rank), "--ranks", str(ranks),
                                  "--id-file", str(ids), "--device", str(rank)], env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
        try:
            outputs = [job.communicate(timeout=DEADLINE) for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        for job, (out, err) in zip(jobs, outputs):
            self.assertEqual(job.returncode, 0, err)
            for line in map(json.loads, out.splitlines()):
                self.assertEqual(line.get("wrong", 0), 0, line)
        return outputs[0][1]

    def test_a_plan_is_made_and_used(self):
        said = self.tune("--sizes", "1024,65536").stderr
        self.assertIn("this is the CPU stand-in: its times mean nothing", said)
        plan = json.loads(self.plan.read_text())["plans"][0]
        self.assertIn("times mean nothing", plan["measured"])
        self.assertEqual(plan["ranges"][-1]["up_to"], 65536)
        for step in self.steps():
            self.assertNotIn("dropped", step)
            self.assertGreater(step["us"], 0)
            self.assertGreater(step["nccl_us"], 0)
        self.assertIn(f"(plan {self.plan})", self.run_job(2))
        # Not of this machine any more.
        log = self.run_job(2, ONEHOP_STANDIN_NCCL_VERSION="22907")
        self.assertIn("nccl '2.28.9' for '2.29.7'", log)
        self.assertNotIn("(plan ", log)
        log = self.run_job(3)
        self.assertIn("ranks '2' for '3'", log)
        # A second plan stands beside the first; measured again, it takes the place of its own.
        self.state.unlink()
        for _ in range(2):
            self.tune("--sizes", "1024", ranks=3)
            self.state.unlink()
        self.assertEqual([p["machine"]["ranks"] for p in json.loads(self.plan.read_text())["plans"]], ["2", "3"])
        self.assertIn(f"(plan {self.plan})", self.run_job(3))

    def interrupt(self, command, how, after):
        """Ends the run when `after` steps are in its state; nothing of it is left running."""
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            end = time.monotonic() + DEADLINE
            while not self.state.exists() or len(self.steps()) < after:
                self.assertIsNone(process.poll(), "it was over too soon")
                self.assertLess(time.monotonic(), end)
                time.sleep(0.002)
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            self.assertEqual(len(children), 4)
            process.send_signal(how)
            self.assertEqual(process.wait(timeout=DEADLINE), -how)
            while any(self.lives(child) for child in children):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
        finally:
            process.kill()
        return self.steps()

    @staticmethod
    def lives(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def test_an_interrupted_run_goes_on_where_it_was(self):
        options = ["--sizes", "1024,4096,65536"]
        whole = self.folder / "whole.json"
        self.tune(*options, out=whole)
        expected = [key(step) for step in self.steps(self.folder / "whole.json.state") if step["round"] == 1]
        before = self.interrupt(self.command(*options), signal.SIGKILL, 3)
        more = self.interrupt(self.command(*options), signal.SIGINT, len(before) + 3)
        self.assertEqual(more[:len(before)], before)
        self.assertFalse(self.plan.exists())
        said = self.tune(*options).stderr
        self.assertIn("going on after", said)
        done = self.steps()
        self.assertEqual(done[:len(more)], more)
        self.assertEqual([key(step) for step in done if step["round"] == 1], expected)
        self.assertEqual(len(set(map(key, done))), len(done), "a step was measured twice")
        # All is done: once more changes nothing but the date.
        self.tune(*options)
        self.assertEqual(self.steps(), done)
        self.assertEqual([name for name in os.listdir(self.folder) if "plan.json" in name and name not in ("plan.json", "plan.json.state")], [])

    def test_two_runs_on_one_file_keep_out_of_each_others_way(self):
        first = subprocess.Popen(self.command(), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + DEADLINE
            while not self.state.exists():
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
            # Another plan file but the same state, the same plan file but another state.
            for out, state in ((self.folder / "other.json", self.state), (self.plan, self.folder / "other.state")):
                done = self.tune("--state", str(state), out=out, code=1)
                self.assertIn("another onehop tune is at work on", done.stderr)
            self.assertIsNone(first.poll(), "it was refused while the first one ran")
            self.assertEqual(first.wait(DEADLINE), 0, first.stderr)
        finally:
            first.kill()
            first.wait()
            first.stderr.close()
        self.assertTrue(self.plan.exists())
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".lock")], [])

    def test_plan_and_state_are_two_files(self):
        done = self.tune("--state", str(self.plan), code=1)
        self.assertIn("--out and --state are the same file", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_a_killed_run_leaves_locked_is_free_again(self):
        lock = self.folder / "plan.json.lock"
        lock.touch()
        self.tune("--sizes", "1024")
        self.assertFalse(lock.exists())

    def test_a_foreign_or_damaged_state_is_refused(self):
        options = ["--sizes", "1024"]
        self.tune(*options)
        good = self.state.read_text()
        foreign = json.loads(good)
        foreign["machine"]["driver"] = "other"
        for text, options, reason in ((json.dumps(foreign), options, "is of another machine"),
                                      (good, ["--sizes", "2048"], "is of a run with other options"),
                                      (good[:len(good) // 2], options, "is no state of onehop tune"),
                                      ("[]", options, "is no state of onehop tune")):
            self.state.write_text(text)
            self.assertIn(reason, self.tune(*options, code=1).stderr)
            self.assertEqual(self.state.read_text(), text)

    def test_what_is_no_plan_file_is_not_written_over(self):
        self.plan.write_text("precious")
        self.assertIn("is no plan file", self.tune("--sizes", "1024", code=1).stderr)
        self.assertEqual(self.plan.read_text(), "precious")
        self.assertFalse(self.state.exists(), "it is said before anything is measured")

    def test_a_method_that_hangs_or_is_wrong_is_dropped(self):
        for fault, why in (("hang", "did not answer within 1 s"), ("wrong", "values are wrong")):
            said = self.tune("--sizes", "512", "--deadline", "1",
                             env={"ONEHOP_TEST_TUNE_FAULT": fault + ":one-shot pull"}).stderr
            self.assertIn("dropped: one-shot pull at 512 bytes", said)
            self.assertIn(why, said)
            for step in self.steps():
                self.assertEqual("dropped" in step, step["method"] == "one-shot pull", step)
            self.assertEqual([r["method"] for r in json.loads(self.plan.read_text())["plans"][0]["ranges"]], ["one-shot push"])
            self.state.unlink()

    def test_settings_of_nccl_are_suggested_for_the_calls_that_it_keeps(self):
        # Stock NCCL and onehop are slow here, but not with one of the settings; with another the results are wrong.
        slow, quick, wrong = (f"ONEHOP_TEST_TUNE_FAULT={fault}:" for fault in ("slow", "none", "wrong"))
        options = ["--sizes", "512", "--rival", quick + " NCCL_A=b", "--rival", wrong]
        done = self.tune(*options, env=dict([slow.split("=")]))
        self.assertIn(f"dropped: NCCL with {wrong} at 1048576 bytes: 1 values are wrong", done.stderr)
        table, _, suggested = done.stdout.partition("For calls that onehop leaves to NCCL")
        self.assertIn("one-shot", table)
        lines = suggested.splitlines()[1:]
        self.assertEqual(len(lines), 1, suggested)
        self.assertRegex(lines[0], rf"^  {quick} NCCL_A=b: 1 MiB 1\d{{8}} -> \d.*; 4 MiB 1\d{{8}} -> \d")
        plan = json.loads(self.plan.read_text())["plans"][0]
        self.assertEqual(plan["ranges"][-1]["up_to"], 512, "the plan has nothing of this")
        # Measured twice what was faster, once what was not, and nothing again when it goes on.
        tried = [(r["round"], r["settings"], r["bytes"]) for r in json.loads(self.state.read_text())["nccl_settings"]]
        self.assertEqual(len(set(tried)), len(tried))
        self.assertEqual([t for t in tried if t[0] == 2], [(2, quick + " NCCL_A=b", 1 << 20), (2, quick + " NCCL_A=b", 4 << 20)])
        before = self.state.read_text()
        self.assertEqual(self.tune(*options, env=dict([slow.split("=")])).stdout, done.stdout)
        self.assertEqual(self.state.read_text(), before)

    def test_nccls_usual_settings_are_tried_unless_the_user_says_no(self):
        # No method is as fast as asked here, so NCCL keeps the size; where ranks share a GPU nothing larger is tried.
        options, keeps = ["--sizes", "512", "--share-gpus"], ["--effort", "least", "--margin", "0.0001"]
        said = self.tune(*options, least=keeps, env={"ONEHOP_STANDIN_DEVICES": "1"}).stdout
        tried = [(r["round"], r["settings"], r["bytes"]) for r in json.loads(self.state.read_text())["nccl_settings"]]
        self.assertIn((1, "NCCL_PROTO=LL", 512), tried)
        self.assertEqual({size for _, _, size in tried}, {512})
        self.assertIn("For calls that onehop leaves to NCCL", said)
        self.state.unlink()
        said = self.tune(*options, least=[*keeps, "--no-rivals"], env={"ONEHOP_STANDIN_DEVICES": "1"}).stdout
        self.assertNotIn("nccl_settings", json.loads(self.state.read_text()))
        self.assertNotIn("For calls that onehop leaves to NCCL", said)

    def test_settings_of_nccl_that_are_none_are_refused_first(self):
        self.assertIn('not "NCCL_PROTO"', self.tune("--rival", "NCCL_PROTO", code=1).stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_one_process_and_one_gpu(self):
        self.tune("--sizes", "1024", "--one-process", ranks=3)
        self.state.unlink()
        self.tune("--sizes", "1024", "--share-gpus", ranks=2, env={"ONEHOP_STANDIN_DEVICES": "1"})
        machines = [plan["machine"] for plan in json.loads(self.plan.read_text())["plans"]]
        self.assertEqual([(m["ranks"], m["processes"]) for m in machines], [("3", "1"), ("2", "2")])
        self.assertIn("PCI 0.0.0 0.0.0;", machines[1]["links"])

    def test_islands_are_those_of_the_links_or_the_users(self):
        self.tune("--sizes", "1024", "--one-process", ranks=8,
                  env={"ONEHOP_STANDIN_FABRIC": "two-sockets-interleaved", "ONEHOP_STANDIN_DEVICES": "8"})
        self.assertIn(", islands 0,2,4,6/1,3,5,7", json.loads(self.state.read_text())["options"])
        self.state.unlink()
        self.tune("--sizes", "1024", "--one-process", "--islands", "0,3/1-2", ranks=4)
        self.assertIn(", islands 0,3/1,2", json.loads(self.state.read_text())["options"])
        self.state.unlink()
        self.assertIn("--islands", self.tune("--islands", "0-1/2", ranks=4, code=1).stderr)

    def test_host_memory_has_a_plan_of_its_own(self):
        self.tune("--sizes", "1024", "--staging", "host")
        plan = json.loads(self.plan.read_text())["plans"][0]
        self.assertEqual(plan["machine"]["staging"], "host memory")
        self.assertIn(plan["ranges"][0]["method"], ("one-shot pull", "two-shot pull", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
