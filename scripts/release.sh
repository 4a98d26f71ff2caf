#!/usr/bin/env bash
# Makes the wheel that is uploaded, of a commit alone, with a library for each torch of scripts/libtorch-pins.sh, and
# checks it: its name, its size, what is in it, the five lines of docs/python_install.md beside each torch, and
# docs/first_hour.md as it is pasted. It uploads nothing: the last line is the command that does.
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh
source scripts/libtorch-pins.sh

MOST_MB=25
PLATFORM=manylinux_2_34_x86_64
UPLOADS_BY=twine==7.0.0

usage() {
  cat <<'TEXT'
usage: scripts/release.sh [--to DIR] [--torch VERSION]... [--wheel FILE] [--help]

Needs a CUDA toolkit of release 13, 12 GB for what is downloaded to .deps, and 8 GB in TMPDIR while it checks.

  --to DIR         where the wheel goes (default: dist)
  --wheel FILE     check this one, which scripts/wheel.sh has made, and make none
  --torch VERSION  install this torch to check the wheel beside it, such as 2.15; may be repeated
                   (default: each that the wheel has a library for)
TEXT
}

to=$PWD/dist wheel="" cells=()
while (($#)); do
  case $1 in
    --to | --wheel | --torch)
      if (($# < 2)); then usage >&2; exit 2; fi
      case $1 in
        --to) to=$(cd "$here" && realpath -m "$2") ;;
        --wheel) wheel=$(cd "$here" && realpath -m "$2") ;;
        --torch) cells+=(--torch "$2") ;;
      esac
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'release.sh: unknown argument "%s"\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

need_space "each torch of the check in its turn" "${TMPDIR:-/tmp}" $((DEPS_MB[venv-cuda] * (100 + DOWNLOADED_PERCENT) / 100)) \
  "TMPDIR=DIR has them in DIR."
if [[ -z $wheel ]]; then
  # One is the oldest and the largest; and scripts/setup.sh has another.
  needed=$((BUILD_MB[wheel] + $(missing_in_deps torch $((${#WHEEL_TORCHES[@]} - 1)))))
  need_space "the wheel with each torch that it is built with" "$PWD" "$needed" "--wheel FILE checks one that is there."
  [[ -z $(git status --porcelain) ]] ||
    stop_with "the tree has changes that no commit has" "Commit them, or check a wheel that is there: --wheel FILE"
  heading "wheel"
  wheel=$(scripts/wheel.sh --to "$to" | tail -n 1)
fi

heading "$wheel"
[[ $wheel == */espalier_tuner-*-py3-none-$PLATFORM.whl ]] ||
  stop_with "$wheel is not named for $PLATFORM" "It asks for newer libraries, or is no wheel of espalier-tuner."
tools=$(scripts/setup-wheel.sh)/venv/bin
# "Consistent" it says of no wheel whose libraries load torch's.
shown=$("$tools/auditwheel" show "$wheel")
[[ ${shown//$'\n'/ } == *"constrains the platform tag to \"$PLATFORM\""* ]] ||
  { printf '%s\n' "$shown"; stop_with "auditwheel does not find it to be of $PLATFORM"; }
bytes=$(stat -c %s "$wheel")
((bytes <= MOST_MB * 1000000)) || stop_with "the wheel has $bytes bytes, and may have $MOST_MB MB"
held=$(python3 -m zipfile --list "$wheel")
for torch in "${WHEEL_TORCHES[@]}"; do
  minor=${torch%.*}
  libraries=(libespalier_torch.so)
  [[ $(printf '%s\n' "$minor" "$FIRST_TORCH_OF_CUDA_13" | sort -V | head -n 1) != "$FIRST_TORCH_OF_CUDA_13" ]] ||
    libraries+=(libespalier_cuda.so)
  for library in "${libraries[@]}"; do
    [[ $held == *espalier/lib/torch-$minor/$library\ * ]] ||
      stop_with "the wheel has no $library for torch $minor" \
        "Each torch of scripts/libtorch-pins.sh has one, and a CUDA part from $FIRST_TORCH_OF_CUDA_13 on."
  done
done
lock_deps release
if ! installed_in .deps/release "$UPLOADS_BY"; then
  make_venv .deps/release "$UPLOADS_BY"
  mark_installed .deps/release "$UPLOADS_BY"
fi
.deps/release/venv/bin/twine check --strict "$wheel"

# The executables are those of the wheel.
ESPALIER_BIN=$PWD/build/wheel/bin scripts/bench.sh install --wheel "$wheel" "${cells[@]}"
ESPALIER_BIN=$PWD/build/wheel/bin scripts/bench.sh first_hour --wheel "$wheel"

heading "to upload it, with a token of the project espalier-tuner on PyPI"
printf '%s\n' "$PWD/.deps/release/venv/bin/twine upload $wheel"
