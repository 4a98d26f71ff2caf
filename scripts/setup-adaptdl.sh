#!/usr/bin/env bash
# Takes AdaptDL's own tests out of its wheel, for tests/python/adaptdl, in .deps/adaptdl-VERSION: its test
# modules alone, and pytest. Prints the folder. A second run does nothing.
# usage: scripts/setup-adaptdl.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

VERSION=0.2.11
WHEEL=adaptdl-$VERSION-py3-none-any.whl
WHEEL_SHA256=781790f107a4884e798b208c7219c7d4c3b42579d1f349c949c2c8626a7d2605
PINS=("adaptdl==$VERSION" pytest==8.4.2)
DIR=.deps/adaptdl-$VERSION

lock_deps adaptdl
if ! installed_in "$DIR" "${PINS[@]}"; then
  make_venv "$DIR" "${PINS[@]:1}"
  # Not installed: nothing of it but its tests is to be found by them.
  pip_of "$DIR/venv" download --no-deps --only-binary :all: --dest "$DIR" "${PINS[0]}"
  sha256sum --check --quiet <<<"$WHEEL_SHA256  $DIR/$WHEEL" ||
    stop_with "$DIR/$WHEEL is not the wheel that these tests were written for"
  "$DIR/venv/bin/python3" - "$DIR" "$WHEEL" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(folder / "tests").mkdir()
with zipfile.ZipFile(folder / sys.argv[2]) as wheel:
    for name in wheel.namelist():
        if name.endswith("_test.py"):
            (folder / "tests" / pathlib.PurePosixPath(name).name).write_bytes(wheel.read(name))
PYTHON
  mark_installed "$DIR" "${PINS[@]}"
fi
printf '%s\n' "$PWD/$DIR"
