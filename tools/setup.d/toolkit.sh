# shellcheck shell=bash
# The CUDA compiler and NCCL: what the machine has, else pip's wheels in the private environment.

cuda_minimum=12.8

# One CUDA 13.0 line, as NVIDIA released it together.
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)
nccl_version=2.28.9

nvcc_version() { "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p'; }

# toolkit_of NVCC: the folder that holds bin/, include/ and the libraries. nvcc knows it best.
toolkit_of() { "$1" -dryrun -x cu /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ _HERE_=\(.*\)\/bin\/*$/\1/p' | head -n 1; }

# A toolkit counts only if a kernel compiles and links with it: packages can be half there, or too old for the
# compiler beside them.
nvcc_works() {
  local scratch
  scratch=$(mktemp -d)
  cat > "$scratch/try.cu" <<'END'
#include <cuda_bf16.h>
#include <cuda_runtime.h>
__global__ void kernel(__nv_bfloat16* x) { *x = __float2bfloat16(1.0f); }
int main() { kernel<<<1, 1>>>(nullptr); return cudaDeviceSynchronize() != cudaSuccess; }
END
  if "$1" -std=c++20 -arch=sm_90 -cudart static -o "$scratch/try" "$scratch/try.cu" > "$scratch/log" 2>&1; then
    rm -rf "$scratch"
    return 0
  fi
  { echo; echo "$1 cannot build a small program:"; cat "$scratch/log"; } >> "$build/setup.log"
  rm -rf "$scratch"
  return 1
}

nvcc_candidates() {
  local newest_first
  mapfile -t newest_first < <(printf '%s\n' /usr/local/cuda-*/bin/nvcc | sort -rV)
  printf '%s\n' "${CUDA_HOME:-${CUDA_PATH:-/nowhere}}/bin/nvcc" "$(command -v nvcc || true)" \
    /usr/local/cuda/bin/nvcc "${newest_first[@]}" "$venv/cuda/bin/nvcc"
}

# Sets cuda_home and cuda_version.
find_toolkit() {
  local nvcc version
  # The answer of last time saves the trial build.
  if [ -e "$build/paths.env" ]; then
    nvcc=$(sed -n 's/^CUDA_HOME=//p' "$build/paths.env")/bin/nvcc
    version=$(sed -n 's/^CUDA_VERSION=//p' "$build/paths.env")
    if [ -x "$nvcc" ] && [ "$(nvcc_version "$nvcc")" = "$version" ] && [ -z "${CUDA_HOME:-}" ]; then
      cuda_home=${nvcc%/bin/nvcc} cuda_version=$version
      return
    fi
  fi
  while read -r nvcc; do
    [ -n "$nvcc" ] && [ -x "$nvcc" ] || continue
    version=$(nvcc_version "$nvcc")
    [ -n "$version" ] && version_at_least "$version" "$cuda_minimum" || continue
    nvcc_works "$nvcc" || continue
    cuda_home=$(toolkit_of "$nvcc") cuda_version=$version
    [ -n "$cuda_home" ] || cuda_home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    return
  done < <(nvcc_candidates)
  install_cuda_wheels
}

install_cuda_wheels() {
  private_python
  step "no CUDA toolkit $cuda_minimum or newer here: fetching CUDA's compiler as wheels (about 90 MB)"
  quietly "$build/setup.log" "$venv/bin/pip" install --no-deps "${cuda_wheels[@]}"
  link_wheel cuda cu13
  # The compiler's own settings look for lib64; the wheels have lib.
  ln -sfn lib "$venv/cuda/lib64"
  ln -sf libcudart.so.13 "$venv/cuda/lib/libcudart.so"
  cuda_home=$venv/cuda
  cuda_version=$(nvcc_version "$cuda_home/bin/nvcc")
  nvcc_works "$cuda_home/bin/nvcc" || fail "CUDA's compiler was installed but does not work here (see $build/setup.log)"
}

# link_wheel NAME FOLDER: gives what a wheel put deep inside the environment a short, stable path.
link_wheel() {
  ln -sfn "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/$2" "$venv/$1"
}

nccl_library_in() {
  local folder
  for folder in "$1/lib64" "$1/lib" "$1/lib/$(uname -m)-linux-gnu"; do
    [ ! -e "$folder/libnccl.so.2" ] || { echo "$folder"; return; }
  done
}

# Sets nccl_home (its include/ holds nccl.h) and nccl_library_dir (empty if there is only the header). The library
# itself is needed only where a job runs on GPUs, and by the tests that patch it.
find_nccl() {
  local folder need_library=$tests
  [ "$(gpu_count)" -lt 2 ] || need_library=yes
  for folder in "${NCCL_HOME:-/nowhere}" "$cuda_home" /usr /usr/local "$venv/nccl"; do
    [ -e "$folder/include/nccl.h" ] || continue
    nccl_home=$folder
    nccl_library_dir=$(nccl_library_in "$folder")
    [ -z "$nccl_library_dir" ] && [ "$need_library" = yes ] || return 0
  done
  private_python
  step "fetching NCCL $nccl_version as a wheel (about 200 MB)"
  quietly "$build/setup.log" "$venv/bin/pip" install --no-deps "nvidia-nccl-cu${cuda_version%%.*}==$nccl_version"
  link_wheel nccl nccl
  ln -sf libnccl.so.2 "$venv/nccl/lib/libnccl.so"
  nccl_home=$venv/nccl nccl_library_dir=$venv/nccl/lib
}
