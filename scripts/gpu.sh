#!/usr/bin/env bash
# Takes Espalier to a machine with a GPU: makes a folder that runs there as it is, and runs it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: scripts/gpu.sh bundle [DIR [BUILD]]  make the folder DIR (default: build/gpu-bundle), for
                                         x86-64 Linux with glibc 2.36 or newer; with the programs
                                         that are in the folder BUILD, instead of building them.
                                         What is in DIR is replaced if this has made it, and else
                                         DIR has to be empty
       DIR/scripts/gpu.sh check          say what the machine lacks
       DIR/scripts/gpu.sh run [OPTION...]  run the steps; run --help lists the options

The machine needs an NVIDIA driver for CUDA 13, and a Python whose PyTorch is the one that the folder
was made with (PYTHON=... names it; default: python3). It needs no network, compiler or root.
TEXT
}

# Of what users and tests run there.
PROGRAMS=(tuner resnet18 bench_overhead_loop bench_resize_trial elastic_probe
  test_trial_runner test_collectives_contract
  test_elastic_training test_elastic_soak)
LIBRARIES=(libespalier_cuda.so libespalier_cuda_calls.so libespalier_torch.so)
MOST_MB=60
FILES=(scripts/gpu.sh tests/gpu tests/benchmarks/{bench_run,elastic_pool,python_loops,python_trial,python_start_trial}.py
  tests/benchmarks/peers/{ddp,models,step_log,torchrun_resize,torchrun_worker}.py
  examples/python_transformers/train.py python/espalier LICENSE)
MARK=.espalier-gpu-bundle  # is in folders that are made here

# Libraries that a program needs and that the machine does not have: no C library, and nothing of
# PyTorch's or the driver's.
libraries_of() {
  ldd "$@" | awk '/=> \// { print $3 }' | sort -u |
    grep -v -E '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|gomp))\.so|/site-packages/|/build/[a-z]*/|/libcuda\.so|/cuda/'
}

# What somebody else has put there is not removed.
refuse_foreign() {
  local to=$1 why=""
  if [[ -e $to && ! -d $to ]]; then
    why="is no folder"
  elif [[ -d $to && ! -e $to/$MARK && -n $(ls -A "$to") ]]; then
    why="is not empty, and was not made by bundle"
  fi
  if [[ -z $why ]]; then return; fi
  printf 'gpu.sh: error: %s %s: want a new or an empty folder\n' "$to" "$why" >&2
  return 1
}

bundle() {
  local to from=$2 programs=() libraries=() name
  to=$(realpath -m "$1")
  refuse_foreign "$to"
  if [[ -n $from ]]; then from=$(realpath -m "$from"); fi
  cd "$here"
  if [[ -z $from ]]; then
    from=build/gpu
    source scripts/steps.sh
    build_preset gpu "${PROGRAMS[@]}" espalier_cuda espalier_cuda_calls espalier_torch
  fi
  if [[ ! -x $from/bin/tuner || ! -e $from/lib/libespalier_torch.so ]]; then
    printf 'gpu.sh: error: %s is no build of the GPU part: bin/tuner or lib/libespalier_torch.so is missing\n' "$from" >&2
    return 1
  fi
  mkdir -p "$to"
  touch "$to/$MARK"
  find "$to" -mindepth 1 -maxdepth 1 ! -name "$MARK" -exec rm -rf {} +
  mkdir -p "$to/bin/lib"
  for name in "${PROGRAMS[@]}"; do programs+=("$from/bin/$name"); done
  for name in "${LIBRARIES[@]}"; do libraries+=("$(find "$from/lib" "$from/bin" -name "$name" | head -n 1)"); done
  libraries_of "${programs[@]}" "${libraries[@]}" | xargs cp -L -t "$to/bin/lib"
  cp -f "${libraries[@]}" "$from/lib/libespalier_torch.json" "$to/bin/lib"
  cp "${programs[@]}" "$to/bin"
  find "$to/bin" -type f ! -name '*.json' -exec strip -s {} +
  tar --exclude=__pycache__ -cf - "${FILES[@]}" | tar -xf - -C "$to"
  sed -n "s/^__version__ = '\(.*\)'\$/\1/p" \
    "$(ldd "$to/bin/resnet18" "$from/bin/resnet18" | awk '$1 == "libtorch_cpu.so" && $3 ~ /^\// { print $3; exit }' |
      xargs dirname)/../version.py" >"$to/torch-version"
  local has_mb
  has_mb=$(du -sm "$to" | cut -f 1)
  printf 'gpu.sh: %s has %d MB\n' "$to" "$has_mb"
  if ((has_mb >= MOST_MB)); then
    printf 'gpu.sh: error: it is to have less than %d MB\n' "$MOST_MB" >&2
    return 1
  fi
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
  # What lies in bin/lib is looked for there by the programs, not by one another.
  lost=$(LD_LIBRARY_PATH=$here/bin/lib:${LD_LIBRARY_PATH:-} find "$here/bin" -type f ! -name '*.json' -exec ldd {} + 2>/dev/null | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' ')
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
  bundle)
    case "${2:-}" in
      -h | --help) usage; exit 0 ;;
      -*) printf 'gpu.sh: unknown argument "%s"\n' "$2" >&2; usage >&2; exit 2 ;;
    esac
    if (($# > 3)); then usage >&2; exit 2; fi
    bundle "${2:-$here/build/gpu-bundle}" "${3:-}"
    ;;
  check) check ;;
  run)
    shift
    link_torch
    exec "${PYTHON:-python3}" "$here/tests/gpu/plan.py" "$@"
    ;;
  -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
