#!/usr/bin/env python3
"""Draws a result file of `onehop bench`: time per call over size, NCCL and onehop, a panel for each mode and type.

  tools/plot_bench.py RESULT.json OUT.svg        or OUT.png

Needs matplotlib.
"""
import argparse
import json
import pathlib
import sys

MODES = {("graph", "other"): "in a graph, a stream of its own", ("graph", "default"): "in a graph, the default stream",
         ("eager", None): "eager"}
COLORS = {"nccl": "#777777", "onehop": "#0b6fa4", "best": "#c46a00"}


def panels_of(rows):
    """Rows by mode, type and place, in the order of the file."""
    panels = {}
    for row in rows:
        place = "in place" if row.get("in_place") else "out of place"
        mode = MODES.get((row["mode"], row.get("replayed_on")), row["mode"])
        panels.setdefault(f"{mode}; {row['type']}, {place}", []).append(row)
    return panels


def line_of(rows, wanted):
    """Sizes and times. Of several rows of one size (models with other numbers of calls) the fastest counts."""
    best = {}
    for row in rows:
        if wanted(row) and (row["bytes"] not in best or row["us"] < best[row["bytes"]]):
            best[row["bytes"]] = row["us"]
    sizes = sorted(best)
    return sizes, [best[size] for size in sizes]


def lines_of(rows):
    """Name, color and points of each line of a panel."""
    lines = [("NCCL", COLORS["nccl"], line_of(rows, lambda row: row["side"] == "nccl" and not row["method"])),
             ("onehop", COLORS["onehop"], line_of(rows, lambda row: row["side"] == "onehop"))]
    if any("=" in row["method"] for row in rows if row["side"] == "nccl"):
        lines.append(("NCCL, best settings", COLORS["best"], line_of(rows, lambda row: row["side"] == "nccl")))
    return lines


def human(size, _=None):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:g} {unit}"
        size /= 1024


def draw(document, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = panels_of(document["rows"])
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(8, 4 * len(panels)), squeeze=False, layout="constrained")
    for axis, (name, rows) in zip(axes[:, 0], panels.items()):
        for label, color, (sizes, times) in lines_of(rows):
            axis.plot(sizes, times, marker="o", markersize=3.5, linewidth=1.6, color=color, label=label,
                      linestyle="--" if label == "NCCL, best settings" else "-")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.xaxis.set_major_formatter(human)
        axis.yaxis.set_major_formatter(lambda us, _: f"{us:g}")
        axis.yaxis.set_minor_formatter(lambda us, _: f"{us:g}" if f"{us:e}"[0] in "25" else "")
        axis.set_xlabel("size of a call")
        axis.set_ylabel("µs per call, median")
        axis.set_title(name, loc="left", fontsize=10)
        axis.grid(True, which="major", color="#dddddd", linewidth=0.7)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    ranks = sorted({row["ranks"] for row in document["rows"]})
    figure.suptitle(f"{document['hardware']}, {document['links']}, {' and '.join(map(str, ranks))} ranks: "
                    f"onehop {document['onehop']} beside NCCL {document['nccl']} ({document['date']})", fontsize=11)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    document = json.loads(args.result.read_text())
    if not document["rows"]:
        print(f"{args.result} has no rows", file=sys.stderr)
        return 1
    try:
        draw(document, args.out)
    except ImportError as error:
        print(f"matplotlib is needed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
