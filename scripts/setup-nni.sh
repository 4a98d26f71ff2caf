#!/usr/bin/env bash
# Installs the NNI that tests and benchmarks speak with, in .deps/nni-3.0: a virtual environment, and
# beside it what builds our own package for it without the network. Prints the folder. A second run
# does nothing.
# usage: scripts/setup-nni.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# nnictl imports pkg_resources, which newer releases of setuptools no longer have. NNI is not
# developed any more, so what it depends on is held where it is known to work.
PINS=(nni==3.0 "setuptools<81" numpy==2.4.6 pandas==3.1.1 scipy==1.17.1 scikit-learn==1.9.1
  websockets==17.4 json-tricks==3.17.3 typeguard==4.1.2 filelock==3.11.0)
BUILD_PINS=(setuptools==80.9.0)
DIR=.deps/nni-3.0

mkdir -p .deps
exec 9>.deps/nni-lock
flock 9
if [[ $(cat "$DIR/installed" 2>/dev/null) != "${PINS[*]}" ]]; then
  rm -rf "$DIR"
  /usr/bin/python3 -m venv "$DIR/venv"
  "$DIR/venv/bin/pip" install --quiet --disable-pip-version-check --no-input "${PINS[@]}" >&2
  printf '%s\n' "${PINS[*]}" >"$DIR/installed"
fi
if [[ $(cat "$DIR/build/installed" 2>/dev/null) != "${BUILD_PINS[*]}" ]]; then
  rm -rf "$DIR/build"
  "$DIR/venv/bin/pip" install --quiet --disable-pip-version-check --no-input --no-deps --target "$DIR/build" \
    "${BUILD_PINS[@]}" >&2
  printf '%s\n' "${BUILD_PINS[*]}" >"$DIR/build/installed"
fi
printf '%s\n' "$PWD/$DIR"
