#!/usr/bin/env python3
"""Counts what the test runners reported and prints the closing line.

usage: count_tests.py [--log TESTLOG.json] [--check NAME=passed|failed|skipped:REASON] [--runner-failed WHAT] ...

A log is Meson's testlog.json. A GoogleTest program counts with each of its cases, any other test as one. A test that
is expected to fail, and does, has passed. Exits non-zero if anything failed or nothing ran.
"""
import argparse
import json
import pathlib
import re
import sys

RUN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
PASS = re.compile(r"^\[       OK \] ([^\s,]+)", re.M)
FAIL = re.compile(r"^\[  FAILED  \] ([^\s,]+).* \(\d+ ms\)", re.M)
SKIP = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)", re.M)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
GOOD = {"OK", "EXPECTEDFAIL"}


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add(self, name, outcome, reason=""):
        if outcome == "passed":
            self.passed += 1
        elif outcome == "skipped":
            self.skipped.append((name, reason or "no reason given"))
        else:
            self.failed.append(name)


def skip_reason(output, case):
    """GTEST_SKIP() prints 'FILE:LINE: Skipped', the message, and then the case's SKIPPED line."""
    begin = output.find(f"[ RUN      ] {case}\n")
    end = output.find(f"[  SKIPPED ] {case} ", begin)
    lines = [line.strip() for line in output[begin:end].splitlines()[1:]]
    return " ".join(line for line in lines if line and not line.endswith(": Skipped"))


def add_googletest(tally, name, result, output):
    ran = PASS.findall(output)
    failed = FAIL.findall(output)
    skipped = SKIP.findall(output)
    tally.passed += len(ran)
    tally.failed += [f"{name}: {case}" for case in failed]
    tally.skipped += [(f"{name}: {case}", skip_reason(output, case) or "no reason given") for case in skipped]
    # A crash, a time-out or a sanitizer report fails the program although no case did. A case that never ended is the
    # likely culprit.
    if result not in GOOD and not failed:
        unfinished = [case for case in RUN.findall(output) if case not in {*ran, *skipped}]
        where = f"{name}: {unfinished[-1]}" if unfinished else name
        tally.failed.append(f"{where} ({result.lower()})")


def add_meson_log(tally, path):
    for line in pathlib.Path(path).read_text(errors="replace").splitlines():
        test = json.loads(line)
        name, result = test["name"], test["result"]
        output = ANSI.sub("", test.get("stdout") or "")
        if "[ RUN      ]" in output and result != "EXPECTEDFAIL":
            add_googletest(tally, name, result, output)
        elif result == "SKIP":
            said = [text.strip() for text in output.splitlines() if text.strip()]
            tally.add(name, "skipped", said[-1] if said else "")
        else:
            tally.add(name, "passed" if result in GOOD else "failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", action="append", default=[])
    parser.add_argument("--check", action="append", default=[])
    parser.add_argument("--runner-failed", action="append", default=[])
    args = parser.parse_args()

    tally = Tally()
    for log in args.log:
        try:
            add_meson_log(tally, log)
        except OSError:
            tally.failed.append(f"{log}: the runner wrote no log")
    for check in args.check:
        name, _, outcome = check.partition("=")
        outcome, _, reason = outcome.partition(":")
        tally.add(name, outcome, reason)
    if args.runner_failed and not tally.failed:
        tally.failed += [f"{what}: the runner failed without naming a test" for what in args.runner_failed]

    for name, reason in tally.skipped:
        print(f"skipped: {name}: {reason}")
    for name in tally.failed:
        print(f"failed: {name}")
    skipped = f", {len(tally.skipped)} skipped" if tally.skipped else ""
    print(f"{tally.passed} passed, {len(tally.failed)} failed{skipped}")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
