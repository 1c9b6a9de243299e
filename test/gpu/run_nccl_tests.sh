#!/usr/bin/env bash
# Unmodified nccl-tests with onehop: right results, and onehop's counters say that it was used, or that it was not where
# it must decline. All processes share GPU 0, under MPS, unless ONE_GPU=0: then one GPU per rank.
#
#   ALL_REDUCE_PERF_MPI=PROGRAM MPIEXEC="mpiexec OPTIONS" NCCL_LIB_DIR=FOLDER test/gpu/run_nccl_tests.sh
#
# WAYS says how the ranks run: "mpi" (default), a process each, with an all_reduce_perf built with MPI=1; "group", all in
# one thread (-g N), and "threads", a thread each (-t N), both with the one that ALL_REDUCE_PERF names and ONE_GPU=0.
# BLOCKING="0 1" runs each with CUDA_LAUNCH_BLOCKING too, where ranks of one process must be left to NCCL; not "group",
# where one thread launches for all ranks and stock NCCL waits for ever.
# NCCL_LIB_DIR holds the libnccl.so.2 to use: 2.30 or newer for several processes on one GPU; empty: the machine's.
# What is run can be narrowed: RANKS="4 8" TYPES="float half bfloat16" GRAPHS="0 10" SIDES="onehop", or SIDES="nccl onehop"
# for stock NCCL beside it. DEADLINE (seconds per run, default 120). Logs go to $OUT, or to build/gpu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/gpu/mps.sh
. test/gpu/mps.sh

one_gpu=${ONE_GPU:-1}
read -ra all_ways <<< "${WAYS:-mpi}"
for way in "${all_ways[@]}"; do
  case $way in
    mpi) : "${ALL_REDUCE_PERF_MPI:?set it to an all_reduce_perf built with MPI=1}" \
      "${MPIEXEC:?set it to the mpiexec that fits, with its options}" ;;
    group | threads) : "${ALL_REDUCE_PERF:?set it to an all_reduce_perf}" ;;
    *) echo "WAYS: $way is none of mpi, group, threads" >&2; exit 2 ;;
  esac
  [ "$way" = mpi ] || [ "$one_gpu" = 0 ] || { echo "WAYS: $way needs a GPU for each rank and ONE_GPU=0" >&2; exit 2; }
done
read -ra mpiexec <<< "${MPIEXEC:-}"
read -ra all_blocking <<< "${BLOCKING:-0}"
read -ra all_ranks <<< "${RANKS:-4 8}"
read -ra all_types <<< "${TYPES:-float half bfloat16}"
read -ra all_graphs <<< "${GRAPHS:-0 10}"
read -ra all_sides <<< "${SIDES:-onehop}"
deadline=${DEADLINE:-120}
plugin=${ONEHOP_PLUGIN:-$PWD/build/plugin/libnccl-net-onehop.so}
out=${OUT:-$PWD/build/gpu}
first=8 last=262144 rows_wanted=16   # 8 B to 256 KiB, doubling

mkdir -p "$out"
scratch=$(mktemp -d)
[ -z "${NCCL_LIB_DIR:-}" ] || export LD_LIBRARY_PATH=$NCCL_LIB_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ "$one_gpu" = 1 ]; then
  export NCCL_TESTS_DEVICE=0 NCCL_MULTI_RANK_GPU_ENABLE=1
  start_mps
fi

# counters FOLDER PROCESSES: least calls taken and most calls passed of any process; complains if one wrote nothing.
counters() {
  python3 - "$@" << 'END'
import json, pathlib, sys
files = sorted(pathlib.Path(sys.argv[1]).glob("stats.*.json"))
totals = [json.loads(file.read_text())["totals"] for file in files]
if len(totals) != int(sys.argv[2]):
    print(f"0 0 statistics-of-{len(totals)}-processes")
else:
    print(min(t["taken"] for t in totals), max(t["passed"] for t in totals), "ok")
END
}

# verdict STDOUT: rows, wrong values, the closing check, and microseconds (out of place) at 8 B, 4 KiB, 64 KiB.
# Standard error is kept apart, so no log line can break a row in two.
verdict() {
  awk '
    $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= 13 {
      rows++
      if ($9 !~ /^[0-9.e+]+$/ || $13 !~ /^[0-9.e+]+$/) unchecked++
      wrong += $9 + $13
      if ($1 == 8 || $1 == 4096 || $1 == 65536) us = us (us == "" ? "" : "/") $6
    }
    /# Out of bounds values *: 0 OK/ { closed = 1 }
    END { print rows + 0, wrong + 0, unchecked + 0, closed + 0, us == "" ? "-" : us }' "$1"
}

runs=0 failures=0
printf '%-7s %-7s %5s %5s %-9s %5s %5s %6s %8s %8s %-22s %4s  %s\n' \
  side way block ranks type graph rows '#wrong' taken passed 'us 8B/4KiB/64KiB' s verdict | tee "$out/nccl-tests.txt"

run_one() {
  local side=$1 ranks=$2 type=$3 graph=$4 way=$5 blocking=$6 status=0 started=$SECONDS
  runs=$((runs + 1))
  local log=$out/nccl-tests-$side-$ranks.log folder=$scratch/$side-$ranks-$type-$graph-$way-$blocking
  local arguments=(-b "$first" -e "$last" -f 2 -d "$type" -w 2 -n 20 -c 1)
  [ "$graph" = 0 ] || arguments+=(-G "$graph")
  mkdir -p "$folder"

  local environment=(MPIEXEC_TIMEOUT="$deadline") program=("${ALL_REDUCE_PERF:-}") processes=1
  case $way in
    mpi) program=("${mpiexec[@]}" -n "$ranks" "$ALL_REDUCE_PERF_MPI" -g 1) processes=$ranks ;;
    group) program+=(-g "$ranks") ;;
    threads) program+=(-t "$ranks" -g 1) ;;
  esac
  if [ "$side" = onehop ]; then
    environment+=(NCCL_NET_PLUGIN="$plugin" ONEHOP_STATS=1 ONEHOP_STATS_FILE="$folder/stats.%p.json")
  fi
  [ "$blocking" = 0 ] || environment+=(CUDA_LAUNCH_BLOCKING=1)
  env "${environment[@]}" timeout -k 5 $((deadline + 10)) "${program[@]}" "${arguments[@]}" \
    > "$folder/stdout" 2> "$folder/stderr" < /dev/null || status=$?
  {
    echo "===== $side, $ranks ranks, $way, CUDA_LAUNCH_BLOCKING=$blocking, ${arguments[*]}: exit code $status"
    cat "$folder/stdout"
    echo "----- standard error"
    cat "$folder/stderr"
  } >> "$log"

  local rows wrong unchecked closed us taken=- passed=- note=ok result=ok
  read -r rows wrong unchecked closed us < <(verdict "$folder/stdout")
  [ "$side" != onehop ] || read -r taken passed note < <(counters "$folder" "$processes")
  if [ "$status" != 0 ]; then
    result="FAILED: exit code $status"
  elif [ "$rows" != "$rows_wanted" ] || [ "$unchecked" != 0 ] || [ "$closed" != 1 ]; then
    result="FAILED: incomplete output"
  elif [ "$wrong" != 0 ]; then
    result="FAILED: wrong results"
  elif [ "$note" != ok ]; then
    result="FAILED: $note"
  elif [ "$side" = onehop ] && [ "$blocking" = 1 ] && [ "$processes" = 1 ]; then
    [ "$taken" = 0 ] || result="FAILED: calls taken where launches block each other"
    grep -q 'OFF.*CUDA_LAUNCH_BLOCKING' "$folder/stderr" || result="FAILED: no line says why it is off"
  elif [ "$side" = onehop ] && [ "$taken" = 0 ]; then
    result="FAILED: no call taken: $(grep -h -m 1 'OFF' "$folder/stderr" || echo 'no OFF line')"
  fi
  [ "$result" = ok ] || failures=$((failures + 1))
  printf '%-7s %-7s %5s %5s %-9s %5s %5s %6s %8s %8s %-22s %4s  %s\n' "$side" "$way" "$blocking" "$ranks" "$type" "$graph" "$rows" "$wrong" \
    "$taken" "$passed" "$us" $((SECONDS - started)) "$result" | tee -a "$out/nccl-tests.txt"
  [ "$result" = ok ] || tail -n 8 "$folder/stderr"
}

for ranks in "${all_ranks[@]}"; do
  for side in "${all_sides[@]}"; do
    : > "$out/nccl-tests-$side-$ranks.log"
    for type in "${all_types[@]}"; do
      for graph in "${all_graphs[@]}"; do
        for way in "${all_ways[@]}"; do
          for blocking in "${all_blocking[@]}"; do
            [ "$way-$blocking" = group-1 ] || run_one "$side" "$ranks" "$type" "$graph" "$way" "$blocking"
          done
        done
      done
    done
  done
done
grep -h -m 1 ' ON' "$out"/nccl-tests-onehop-*.log || true
rm -rf "$scratch"
[ "$failures" = 0 ] || echo "$failures runs failed"
[ "$runs" != 0 ] || echo "nothing was run"
exit $((failures > 0 || runs == 0))
