# shellcheck shell=bash
# CUDA's Multi-Process Service: several processes on one GPU run side by side instead of in time slices. Source this,
# call start_mps; it ends with the script.

start_mps() {
  command -v nvidia-cuda-mps-control > /dev/null || {
    echo "no nvidia-cuda-mps-control here: processes on one GPU are time-sliced, expect milliseconds per call" >&2
    return 0
  }
  mps_folder=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY=$mps_folder CUDA_MPS_LOG_DIRECTORY=$mps_folder
  nvidia-cuda-mps-control -d
  trap stop_mps EXIT
}

stop_mps() {
  # A client that hangs would make an orderly end wait for ever.
  timeout 20 nvidia-cuda-mps-control <<< quit > /dev/null 2>&1 || true
  rm -rf "$mps_folder"
}
