#!/usr/bin/env bash
# Installs the Ray that tests/python/ray runs on, for the Python of .deps/venv with its torch,
# in .deps/ray-2.60.0. Prints the folder. A second run does nothing.
# usage: scripts/setup-ray.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# Ray, and all that its client and its cluster need.
REQUIREMENTS=tests/python/ray/requirements.txt
# What `ray job` needs besides: of the extra `default`, what its dashboard imports. In a folder of its own, since
# each of Ray's machines runs more where it can be imported.
DASHBOARD=tests/python/ray/dashboard.txt
DIR=.deps/ray-2.60.0

lock_deps ray
[[ -x .deps/venv/bin/python3 ]] || stop_with "there is no .deps/venv with torch" "Run scripts/setup.sh before."
sums=$(cat $REQUIREMENTS $DASHBOARD | sha256sum)
if ! installed_in "$DIR" "$sums"; then
  need_space_in_deps "$DIR"
  rm -rf "$DIR"
  pip_of .deps/venv install --no-deps --require-hashes --target "$DIR/site" -r $REQUIREMENTS
  pip_of .deps/venv install --no-deps --require-hashes --target "$DIR/dashboard" -r $DASHBOARD
  mark_installed "$DIR" "$sums"
fi
printf '%s\n' "$PWD/$DIR"
