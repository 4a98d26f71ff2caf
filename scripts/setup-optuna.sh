#!/usr/bin/env bash
# Installs the Optuna that tests and benchmarks speak with, in .deps/optuna-VERSION: a virtual
# environment and, for Optuna's own storage tests, its source distribution. Prints the folder. A
# second run does nothing.
# usage: scripts/setup-optuna.sh [VERSION]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSION=${1:-5.0.0}
DIR=.deps/optuna-$VERSION
case $VERSION in
  5.0.0) PINS=(grpcio==1.85.1 protobuf==7.36.2 optuna-dashboard==0.21.0 selenium==4.51.0) ;;
  4.5.0) PINS=(grpcio==1.74.0 "protobuf>=6.31,<7") ;;
  *) printf 'setup-optuna.sh: no pins for Optuna %s; there are 5.0.0 and 4.5.0\n' "$VERSION" >&2; exit 2 ;;
esac

mkdir -p .deps
exec 9>.deps/optuna-lock
flock 9
if [[ $(cat "$DIR/installed" 2>/dev/null) != "${PINS[*]}" ]]; then
  rm -rf "$DIR"
  /usr/bin/python3 -m venv "$DIR/venv"
  "$DIR/venv/bin/pip" install --quiet --disable-pip-version-check --no-input "optuna==$VERSION" \
    "${PINS[@]}" pytest pytest-timeout fakeredis scipy pandas plotly cmaes setuptools >&2
  # The tests are in the source distribution, not in the wheel.
  "$DIR/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --dest "$DIR" "optuna==$VERSION" >&2
  tar -xzf "$DIR/optuna-$VERSION.tar.gz" -C "$DIR"
  printf '%s\n' "${PINS[*]}" >"$DIR/installed"
fi
printf '%s\n' "$PWD/$DIR"
