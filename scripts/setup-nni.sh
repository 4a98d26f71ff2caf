#!/usr/bin/env bash
# Installs the NNI that tests and benchmarks speak with, in .deps/nni-3.0: a virtual environment, and
# beside it what builds our own package for it without the network. Prints the folder. A second run
# does nothing.
# usage: scripts/setup-nni.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# nnictl imports pkg_resources, which newer releases of setuptools no longer have. NNI is not
# developed any more, so what it depends on is held where it is known to work.
PINS=(nni==3.0 "setuptools<81" numpy==2.4.6 pandas==3.1.1 scipy==1.17.1 scikit-learn==1.9.1
  websockets==17.4 json-tricks==3.17.3 typeguard==4.1.2 filelock==3.11.0)
BUILD_PINS=(setuptools==80.9.0)
DIR=.deps/nni-3.0

lock_deps nni
if ! installed_in "$DIR" "${PINS[@]}"; then
  make_venv "$DIR" "${PINS[@]}"
  mark_installed "$DIR" "${PINS[@]}"
fi
if ! installed_in "$DIR/build" "${BUILD_PINS[@]}"; then
  rm -rf "$DIR/build"
  pip_of "$DIR/venv" install --no-deps --target "$DIR/build" "${BUILD_PINS[@]}"
  mark_installed "$DIR/build" "${BUILD_PINS[@]}"
fi
printf '%s\n' "$PWD/$DIR"
