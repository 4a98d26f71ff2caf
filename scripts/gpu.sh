#!/usr/bin/env bash
# Takes Espalier to a machine with a GPU: makes a folder that runs there as it is, and runs it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/gpu.sh bundle [DIR]       make the folder DIR (default: build/gpu-bundle), for
                                         x86-64 Linux with glibc 2.36 or newer
       DIR/scripts/gpu.sh check          say what the machine lacks
       DIR/scripts/gpu.sh run [OPTION...]  run the steps; run --help lists the options

The machine needs an NVIDIA driver for CUDA 13, and a Python whose PyTorch is the one that the folder
was made with (PYTHON=... names it; default: python3). It needs no network, compiler or root.
TEXT
}

# Of what users and tests run there.
PROGRAMS=(tuner resnet18 char_lm emulated spirals bench_overhead_loop bench_resize_trial elastic_probe
  test_device test_gradient_buckets test_state_transfer test_checkpoint test_collectives_contract
  test_device_group test_elastic_soak)
FILES=(scripts/gpu.sh tests/gpu tests/benchmarks/bench_run.py tests/benchmarks/elastic_pool.py LICENSE)

# Libraries that a program needs and that the machine does not have: no C library, and nothing of
# PyTorch's or the driver's.
libraries_of() {
  ldd "$@" | awk '/=> \// { print $3 }' | sort -u |
    grep -v -E '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|gomp))\.so|/site-packages/|/build/gpu/|/libcuda\.so|/cuda/'
}

bundle() {
  local to=$1 programs=() program
  cd "$here"
  source scripts/steps.sh
  build_preset gpu "${PROGRAMS[@]}" espalier_cuda
  rm -rf "$to"
  mkdir -p "$to/bin/lib"
  for program in "${PROGRAMS[@]}"; do programs+=("build/gpu/bin/$program"); done
  libraries_of "${programs[@]}" build/gpu/lib/libespalier_cuda.so | xargs cp -L -t "$to/bin/lib"
  cp build/gpu/lib/libespalier_cuda.so "$to/bin/lib"
  cp "${programs[@]}" "$to/bin"
  find "$to/bin" -type f -exec strip -s {} +
  tar --exclude=__pycache__ -cf - "${FILES[@]}" | tar -xf - -C "$to"
  sed -n "s/^__version__ = '\(.*\)'\$/\1/p" \
    "$(ldd build/gpu/bin/resnet18 | awk '$1 == "libtorch_cpu.so" { print $3 }' | xargs dirname)/../version.py" >"$to/torch-version"
  printf 'gpu.sh: %s has %d MB\n' "$to" "$(du -sm "$to" | cut -f 1)"
}

# Makes PyTorch's libraries those of the folder: bin/lib/{torch,nccl,cuda} lie on the programs' run path.
link_torch() {
  local torch site
  torch=$("${PYTHON:-python3}" -c 'import torch, os; print(os.path.dirname(torch.__file__))') ||
    { printf 'gpu.sh: error: %s has no PyTorch; PYTHON=... names another\n' "${PYTHON:-python3}" >&2; exit 1; }
  site=$(dirname "$torch")
  ln -sfn "$torch/lib" "$here/bin/lib/torch"
  ln -sfn "$site/nvidia/nccl/lib" "$here/bin/lib/nccl"
  ln -sfn "$site/nvidia/cu13/lib" "$here/bin/lib/cuda"
}

check() {
  local missing=0
  say() { printf '%-10s %s\n' "$1" "$2"; }
  link_torch
  local has wants
  has=$("${PYTHON:-python3}" -c 'import torch; print(torch.__version__)')
  wants=$(cat "$here/torch-version" 2>/dev/null || true)
  say PyTorch "$has (made with ${wants:-an unknown one})"
  if [[ -n $wants && ${has%%+*} != "${wants%%+*}" ]]; then missing=1; fi
  say glibc "$(ldd --version | head -n 1 | grep -o '[0-9.]*$') (needs 2.36)"
  local lost
  lost=$(find "$here/bin" -type f -exec ldd {} + 2>/dev/null | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' ')
  say libraries "${lost:+not found: }${lost:-all found}"
  if [[ -n $lost ]]; then missing=1; fi
  if [[ -e /dev/nvidiactl ]] && command -v nvidia-smi >/dev/null; then
    say driver "$(nvidia-smi -L 2>&1 | head -n 1)"
  else
    say driver "none: /dev/nvidiactl or nvidia-smi is missing"
    missing=1
  fi
  return "$missing"
}

case "${1:-}" in
  bundle) bundle "${2:-build/gpu-bundle}" ;;
  check) check ;;
  run)
    shift
    link_torch
    exec "${PYTHON:-python3}" "$here/tests/gpu/plan.py" "$@"
    ;;
  -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
