#!/usr/bin/env bash
# PyTorch's all_reduce with stock NCCL and with onehop, into one result file.
#
#   test/gpu/run_torch.sh [torch_allreduce.py OPTIONS]
#
# Two or more GPUs: one rank per GPU (RANKS, default 2), with PyTorch's own NCCL; stock NCCL also without support for
# mixing graphs. One GPU: RANKS (default 4) processes on it, under MPS, with the libnccl.so.2 in NCCL_LIB_DIR (2.30 or
# newer), and fewer replays, as calls take far longer there. DEADLINE: seconds per side. The result goes to $OUT, or to
# build/gpu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/gpu/mps.sh
. test/gpu/mps.sh

plugin=${ONEHOP_PLUGIN:-$PWD/build/plugin/libnccl-net-onehop.so}
out=${OUT:-$PWD/build/gpu}
deadline=${DEADLINE:-150}
gpus=$(nvidia-smi -L | grep -c '^GPU ' || true)
mkdir -p "$out"
result=$out/torch-allreduce.json
rm -f "$result"

job=(test/gpu/torch_allreduce.py --deadline "$deadline" --out "$result")
preload=()
if [ "$gpus" -ge 2 ]; then
  ranks=${RANKS:-2}
else
  ranks=${RANKS:-4}
  : "${NCCL_LIB_DIR:?set it to the folder of a libnccl.so.2, 2.30 or newer}"
  job+=(--one-gpu --blocks 10 --replays 2 --checks 4)
  preload=(LD_PRELOAD="$NCCL_LIB_DIR/libnccl.so.2" NCCL_MULTI_RANK_GPU_ENABLE=1)
  start_mps
fi

failures=0
# run NAME VARIABLE=VALUE...
run() {
  local name=$1 status=0
  shift
  echo "== $name"
  # torchrun's rendezvous must find this host whatever its name resolves to.
  env "${preload[@]}" "$@" timeout -k 5 $((deadline + 30)) python3 -m torch.distributed.run \
    --nnodes 1 --nproc-per-node "$ranks" --master-addr 127.0.0.1 --master-port "$((20000 + RANDOM % 20000))" \
    "${job[@]}" "${options[@]}" < /dev/null 2> "$out/torch-$name.log" || status=$?
  grep -h ' ON' "$out/torch-$name.log" | head -n 1 || true
  if [ "$status" != 0 ]; then
    failures=$((failures + 1))
    echo "FAILED: $name: exit code $status"
    tail -n 15 "$out/torch-$name.log"
  fi
}

options=("$@")
run nccl
[ "$gpus" -lt 2 ] || run nccl-no-mixing NCCL_GRAPH_MIXING_SUPPORT=0
run onehop NCCL_NET_PLUGIN="$plugin" ONEHOP_STATS=1
[ "$failures" = 0 ] || echo "$failures runs failed"
exit $((failures > 0))
