#!/usr/bin/env python3
"""PyTorch's all_reduce, eager and in CUDA graphs: right, and how long a call takes. Start it with torchrun.

  torchrun --standalone --nproc-per-node 2 test/gpu/torch_allreduce.py                 one GPU per rank
  LD_PRELOAD=libnccl.so.2 NCCL_MULTI_RANK_GPU_ENABLE=1 torchrun --standalone --nproc-per-node 4 \\
      test/gpu/torch_allreduce.py --one-gpu            all ranks on GPU 0 (NCCL 2.30 or newer; best under MPS)

With NCCL_NET_PLUGIN naming onehop its rows are marked "onehop", else "nccl". Rank 0 prints one JSON row per case and,
last, a line {"done": true, ...}. Any wrong result, or no call taken by onehop, makes the exit code 1.
"""
import argparse
import ctypes
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist

TYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float16": torch.float16}


class OnehopStatistics(ctypes.Structure):
    """onehopStatistics of include/onehop/onehop.h."""
    _fields_ = [("images", ctypes.c_uint32), ("seen", ctypes.c_uint64), ("taken", ctypes.c_uint64),
                ("passed", ctypes.c_uint64), ("on", ctypes.c_uint64), ("off", ctypes.c_uint64)]


def onehop_library():
    """The plugin as the job loaded it, or None. Opening it anew would be another way in than the one under test."""
    for variable in ("NCCL_NET_PLUGIN", "LD_PRELOAD", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"):
        for path in os.environ.get(variable, "").replace(",", ":").split(":"):
            if "onehop" in path:
                try:
                    return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
                except OSError:
                    return None
    return None


def wants_onehop():
    return any("onehop" in os.environ.get(name, "")
               for name in ("NCCL_NET_PLUGIN", "LD_PRELOAD", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"))


class Ranks:
    """What the ranks tell each other beside the collectives under test: through the store, never through NCCL."""

    def __init__(self):
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        self.store = dist.PrefixStore("torch_allreduce", dist.distributed_c10d._get_default_store())
        self.step = 0

    def gather(self, value):
        self.step += 1
        self.store.set(f"{self.step}/{self.rank}", json.dumps(value))
        return [json.loads(self.store.get(f"{self.step}/{rank}")) for rank in range(self.count)]

    def barrier(self):
        self.gather(0)


def fill(tensor, index, rank, turn, number):
    """Small whole numbers: their sums are exact in every type (at most 8 ranks of at most 15), and differ with rank,
    turn, call and place."""
    tensor.copy_((index * 3 + rank * 7 + turn * 5 + number * 11) % 16)


def expected(index, ranks, turn, number):
    return sum((index * 3 + rank * 7 + turn * 5 + number * 11) % 16 for rank in range(ranks))


def count_wrong(tensors, index, ranks, turn):
    wrong = 0
    for number, tensor in enumerate(tensors):
        wrong += (tensor.float() != expected(index, ranks, turn, number).float()).sum()
    return int(wrong)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row_of(ranks, args, type_name, mode, blocks, wrong, **more):
    """A call is as slow as its slowest rank; wrong results of all ranks count."""
    mine = {"us": statistics.median(blocks), "us_p99": percentile(blocks, 0.99), "wrong": wrong} if blocks else {"wrong": wrong}
    everyone = ranks.gather(mine)
    row = {"side": args.side, "plan": args.plan, "method": args.method, "ranks": ranks.count, "processes": ranks.count,
           "bytes": args.count * TYPES[type_name].itemsize, "type": type_name, "op": "sum", "mode": mode,
           "in_place": True, **more}
    if blocks:
        row["us"] = round(max(one["us"] for one in everyone), 3)
        row["us_p99"] = round(max(one["us_p99"] for one in everyone), 3)
    row["wrong"] = sum(one["wrong"] for one in everyone)
    return row


def run_eager(ranks, args, type_name, index):
    tensors = [torch.empty(args.count, dtype=TYPES[type_name], device="cuda") for _ in range(args.calls)]
    wrong = 0
    for turn in range(args.checks):
        for number, tensor in enumerate(tensors):
            fill(tensor, index, ranks.rank, turn, number)
        for tensor in tensors:
            dist.all_reduce(tensor)
        wrong += count_wrong(tensors, index, ranks.count, turn)

    # Zeros stay zeros however often they are summed.
    for tensor in tensors:
        tensor.zero_()
    blocks, host = [], []
    for _ in range(args.blocks):
        torch.cuda.synchronize()
        ranks.barrier()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        dist.all_reduce(tensors[0])
        begin.record()
        started = time.perf_counter()
        for tensor in tensors:
            dist.all_reduce(tensor)
        host.append((time.perf_counter() - started) * 1e6 / args.calls)
        end.record()
        end.synchronize()
        blocks.append(begin.elapsed_time(end) * 1e3 / args.calls)
    slowest = max(ranks.gather(statistics.median(host)))
    yield row_of(ranks, args, type_name, "eager", blocks, wrong, host_us=round(slowest, 3))


def capture(args, tensors):
    """Captured on a side stream, as frameworks do."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for tensor in tensors[:2]:
            dist.all_reduce(tensor)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for tensor in tensors:
            dist.all_reduce(tensor)
    torch.cuda.synchronize()
    return graph


def run_graph(ranks, args, type_name, index):
    tensors = [torch.zeros(args.count, dtype=TYPES[type_name], device="cuda") for _ in range(args.calls)]
    graph = capture(args, tensors)
    for name, stream in (("default", torch.cuda.default_stream()), ("other", torch.cuda.Stream())):
        if args.replay not in ("both", name):
            continue
        wrong = 0
        with torch.cuda.stream(stream):
            for turn in range(args.checks):
                for number, tensor in enumerate(tensors):
                    fill(tensor, index, ranks.rank, turn, number)
                graph.replay()
                wrong += count_wrong(tensors, index, ranks.count, turn)
                # Eager calls between replays, as in a job that is partly captured.
                fill(tensors[0], index, ranks.rank, turn + 1, 0)
                dist.all_reduce(tensors[0])
                wrong += count_wrong(tensors[:1], index, ranks.count, turn + 1)

            for tensor in tensors:
                tensor.zero_()
            blocks = []
            for _ in range(args.blocks):
                torch.cuda.synchronize()
                ranks.barrier()
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                # The first replay brings the ranks into step and hides the host's launching of the others.
                graph.replay()
                begin.record()
                for _ in range(args.replays):
                    graph.replay()
                end.record()
                end.synchronize()
                blocks.append(begin.elapsed_time(end) * 1e3 / args.replays / args.calls)
        torch.cuda.synchronize()
        yield row_of(ranks, args, type_name, "graph", blocks, wrong, calls_per_graph=args.calls, replayed_on=name)
    del graph


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def append(path, args, rows, version):
    """Adds rows to a result file, which the first side to run makes."""
    path = pathlib.Path(path)
    if path.exists():
        document = json.loads(path.read_text())
        document["command"] += f"; {args.command}"
        document["onehop"] = version or document["onehop"]
    else:
        gpu_names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        used = 1 if args.one_gpu else dist.get_world_size()
        document = {
            "title": args.title, "date": datetime.date.today().isoformat(), "command": args.command,
            "commit": os.environ.get("ONEHOP_TEST_COMMIT") or output_of("git", "rev-parse", "--short", "HEAD") or "unknown",
            "hardware": f"{used}x {gpu_names[0]}", "gpus": used, "links": args.links or ("same GPU" if args.one_gpu else "NVLink"),
            "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0],
            "cuda": torch.version.cuda, "nccl": ".".join(map(str, torch.cuda.nccl.version())), "onehop": version, "rows": []}
    document["rows"] += rows
    path.write_text(json.dumps(document, indent=1) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", default="bfloat16,float32,float16", help="which of bfloat16, float32, float16")
    parser.add_argument("--modes", default="eager,graph")
    parser.add_argument("--replay", choices=("both", "default", "other"), default="both", help="stream of the replays")
    parser.add_argument("--count", type=int, default=21504, help="elements per call (default 21504: 42 KiB of bfloat16)")
    parser.add_argument("--calls", type=int, default=122, help="calls per graph or eager block")
    parser.add_argument("--checks", type=int, default=10, help="checked turns per case")
    parser.add_argument("--blocks", type=int, default=50, help="timed blocks; the median counts")
    parser.add_argument("--replays", type=int, default=5, help="replays per timed block")
    parser.add_argument("--one-gpu", action="store_true", help="all ranks on GPU 0")
    parser.add_argument("--deadline", type=int, default=240, metavar="S", help="seconds, then the process is ended")
    parser.add_argument("--plan", default="", help="plan of the rows; default auto, or pinned if ONEHOP_ALGO names a method")
    parser.add_argument("--method", default="", help="method of the rows")
    parser.add_argument("--out", help="append the rows to this result file")
    parser.add_argument("--title", default="PyTorch all_reduce")
    parser.add_argument("--links", default="")
    args = parser.parse_args()
    unknown = set(args.types.split(",")) - TYPES.keys() | set(args.modes.split(",")) - {"eager", "graph"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    pinned = os.environ.get("ONEHOP_ALGO", "auto") != "auto"
    args.side = "onehop" if wants_onehop() else "nccl"
    args.plan = args.plan or ("pinned" if pinned else "auto") if args.side == "onehop" else ""
    if not args.method:
        if args.side == "onehop":
            args.method = os.environ["ONEHOP_ALGO"] if pinned else "one-shot"
        elif "NCCL_GRAPH_MIXING_SUPPORT" in os.environ:
            args.method = f"NCCL_GRAPH_MIXING_SUPPORT={os.environ['NCCL_GRAPH_MIXING_SUPPORT']}"
    args.command = " ".join(["torchrun --nproc-per-node", os.environ.get("LOCAL_WORLD_SIZE", "?"), *sys.argv])
    return args


def main():
    args = parse_arguments()
    signal.alarm(args.deadline)   # a hang in a collective cannot be interrupted from Python: the default action ends the process
    torch.cuda.set_device(0 if args.one_gpu else int(os.environ["LOCAL_RANK"]))
    # No device_id: the communicator is then made at the first call, as in most jobs.
    dist.init_process_group("nccl")
    ranks = Ranks()
    index = torch.arange(args.count, device="cuda", dtype=torch.int64)
    for type_name in args.types.split(","):
        for _ in range(3):
            dist.all_reduce(torch.zeros(args.count, dtype=TYPES[type_name], device="cuda"))
    torch.cuda.synchronize()
    ranks.barrier()

    rows = []
    for type_name in args.types.split(","):
        for mode in args.modes.split(","):
            for row in {"eager": run_eager, "graph": run_graph}[mode](ranks, args, type_name, index):
                rows.append(row)
                if ranks.rank == 0:
                    print(json.dumps(row), flush=True)

    counted, version = OnehopStatistics(), ""
    library = onehop_library()
    if library is not None:
        library.onehopGetStatistics(ctypes.byref(counted))
        library.onehopVersion.restype = ctypes.c_char_p
        version = library.onehopVersion().decode()
    taken = ranks.gather(counted.taken)
    wrong = sum(row["wrong"] for row in rows)
    good = wrong == 0 and (args.side == "nccl" or min(taken) > 0)
    if ranks.rank == 0:
        print(json.dumps({"done": True, "good": good, "wrong": wrong, "taken": taken, "passed": counted.passed,
                          "nccl": ".".join(map(str, torch.cuda.nccl.version()))}), flush=True)
        if args.out:
            append(args.out, args, rows, version)
    ranks.barrier()
    dist.destroy_process_group()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
