#!/usr/bin/env python3
"""Checks the documents: links inside the repository lead somewhere, and result files have the agreed form."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
RESULT_KEYS = {"title", "date", "command", "commit", "hardware", "gpus", "links", "driver", "cuda", "nccl", "onehop", "rows"}
ROW_KEYS = {"side", "method", "ranks", "processes", "bytes", "type", "op", "mode", "us"}


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


def main():
    problems = [problem for path in documents() for problem in check_links(path)]
    problems += [problem for path in (ROOT / "docs" / "results").glob("*.json") for problem in check_results(path)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
