#!/usr/bin/env python3
"""Checks the documents: links inside the repository lead somewhere, result files have the agreed form, and every test that
docs/scenarios.md names exists."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
RESULT_KEYS = {"title", "date", "command", "commit", "hardware", "gpus", "links", "driver", "cuda", "nccl", "onehop", "rows"}
ROW_KEYS = {"side", "method", "ranks", "processes", "bytes", "type", "op", "mode", "us"}

GTEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
PROGRAM = re.compile(r"(?:test|executable|program)\(\s*'([\w-]+)'")
# Tests that docs/scenarios.md may name before they are in the tree.
EXPECTED_LATER = {"nccl-life", "nccl-soak"}


def documents():
    yield from ROOT.glob("*.md")
    for folder in ("docs", "plugin", "kernels", "test", "tools", "include"):
        yield from (ROOT / folder).rglob("*.md")


def anchors(text):
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(path):
    text = path.read_text()
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists():
            yield f"{path.relative_to(ROOT)}: no such file: {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{path.relative_to(ROOT)}: no such heading: {target}"


def check_results(path):
    name = path.relative_to(ROOT)
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        yield f"{name}: {error}"
        return
    missing = RESULT_KEYS - document.keys()
    if missing:
        yield f"{name}: lacks {', '.join(sorted(missing))}"
    for index, row in enumerate(document.get("rows", [])):
        missing = ROW_KEYS - row.keys()
        if missing:
            yield f"{name}: row {index} lacks {', '.join(sorted(missing))}"
        elif not row["us"] > 0:
            yield f"{name}: row {index}: a row that could not be measured is absent, never zero"


def check_scenarios():
    """Of each row of the table: the tests are those of a suite (`Suite.*`), one of them (`Suite.Name`), a test or program of
    a meson.build (`name`), or a file."""
    tests, programs = {}, set()
    for source in (ROOT / "test").rglob("*.cpp"):
        for suite, name in GTEST.findall(source.read_text()):
            tests.setdefault(suite, set()).add(name)
    for build in (ROOT / "test").rglob("meson.build"):
        programs.update(PROGRAM.findall(build.read_text()))
    for line in (ROOT / "docs" / "scenarios.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not re.fullmatch(r"[A-E]\d+", cells[0]):
            continue
        if len(cells) != 5:
            yield f"docs/scenarios.md: {cells[0]} has {len(cells)} cells"
            continue
        if not (cells[2] or cells[3] or cells[4] == "hardware"):
            yield f"docs/scenarios.md: {cells[0]} names no test"
        for name in re.findall(r"`([^`]+)`", cells[2] + cells[3]):
            suite, dot, case = name.partition(".")
            if suite in EXPECTED_LATER or name in programs or ("/" in name and (ROOT / name).exists()):
                continue
            if not dot or suite not in tests or (case != "*" and case not in tests[suite]):
                yield f"docs/scenarios.md: {cells[0]}: there is no test {name}"


def main():
    problems = [problem for path in documents() for problem in check_links(path)]
    problems += [problem for path in (ROOT / "docs" / "results").glob("*.json") for problem in check_results(path)]
    problems += check_scenarios()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
