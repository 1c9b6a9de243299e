#!/usr/bin/env bash
# What happens with onehop when ranks die, come late, come and go, and when streams, graphs and threads mix; and mixed
# traffic all the while. All on GPU 0 (or over all GPUs there are), with the real NCCL, without MPS.
#
#   NCCL_LIB_DIR=FOLDER test/gpu/run_life.sh PLUGIN OUTDIR
#
# NCCL_LIB_DIR holds the libnccl.so.2 to use (2.30.7 or newer where ranks share a GPU; empty: the machine's). BIN is the
# folder of nccl-life and nccl-soak (default build/test/gpu/life). SOAK_S: seconds of mixed traffic beside the rest (480;
# 0: none), SOAK_RANKS its ranks (8). LIFE_S: seconds for the rest (480). SCALE: part of the counts (1). Logs and JSON go to
# OUTDIR. The last line is "N passed, N failed"; a run takes SOAK_S and LIFE_S side by side, and at most a minute more.
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
plugin=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
bin=${BIN:-$(dirname "${BASH_SOURCE[0]}")/../../build/test/gpu/life}
life=${LIFE_PROGRAM:-$bin/nccl-life} soak=${SOAK_PROGRAM:-$bin/nccl-soak}
soak_s=${SOAK_S:-480} life_s=${LIFE_S:-480} scale=${SCALE:-1}
[ -z "${NCCL_LIB_DIR:-}" ] || export LD_LIBRARY_PATH=$NCCL_LIB_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export NCCL_NET_PLUGIN=$plugin

groups_started=()
end_all() {
  for group in "${groups_started[@]}"; do kill -KILL -- "-$group" 2> /dev/null || true; done
  rm -f "$out/steady"
}
trap end_all EXIT
trap 'exit 143' TERM INT

# start LOG SECONDS COMMAND...: in a process group of its own, which is gone after so many seconds whatever happens.
start() {
  local log=$1 seconds=$2
  shift 2
  setsid timeout -k 5 "$seconds" "$@" > "$log" 2>&1 < /dev/null &
  started=$!
  groups_started+=("$started")
}

# While `steady` exists the soak holds the GPU memory that it has, so that others can look at what is free.
soak_group=
if [ "$soak_s" != 0 ]; then
  : > "$out/steady"
  start "$out/soak.log" $((soak_s + 45)) "$soak" "$out/soak.json" "$soak_s" "${SOAK_RANKS:-8}" "$out/steady"
  soak_group=$started
  for _ in {1..120}; do
    ! grep -q 'communicators made' "$out/soak.log" || break
    sleep 0.5
  done
fi

memory_s=$((life_s / 2))
start "$out/life-memory.log" $((memory_s + 45)) "$life" "$out/life-memory.json" "$out/logs" memory "$memory_s" "$scale"
wait "$started" || true
rm -f "$out/steady"
cat "$out/life-memory.log"
left=$((life_s - SECONDS))
[ "$left" -ge 60 ] || left=60
start "$out/life-others.log" $((left + 45)) "$life" "$out/life-others.json" "$out/logs" others "$left" "$scale"
wait "$started" || true
cat "$out/life-others.log"
if [ -n "$soak_group" ]; then
  wait "$soak_group" || true
  grep -v '] onehop ' "$out/soak.log" || true
fi
end_all

# The summaries: "nccl-life: N passed, N failed". Who wrote none has failed.
passed=0 failed=0
for log in life-memory life-others ${soak_group:+soak}; do
  if summary=$(grep -hE '^nccl-(life|soak): [0-9]+ passed, [0-9]+ failed$' "$out/$log.log"); then
    read -r _ p _ f _ <<< "$summary"
    passed=$((passed + p)) failed=$((failed + f))
  else
    echo "FAILED  $log ended without a summary"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
exit $((failed > 0))
