#!/usr/bin/env bash
# Installs the Hugging Face transformers that tests/python/transformers trains with, for the torch of .deps/venv, in
# .deps/transformers-VERSION. Prints the folder. A second run does nothing.
# usage: scripts/setup-transformers.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# All that it needs but torch, numpy and what comes with them.
REQUIREMENTS=tests/python/transformers/requirements.txt
VERSION=$(sed -n 's/^transformers==\([0-9.]*\).*/\1/p' $REQUIREMENTS)
DIR=.deps/transformers-$VERSION

lock_deps transformers
[[ -x .deps/venv/bin/python3 ]] || stop_with "there is no .deps/venv with torch" "Run scripts/setup.sh before."
sums=$(sha256sum <$REQUIREMENTS)
if ! installed_in "$DIR" "$sums"; then
  rm -rf "$DIR"
  pip_of .deps/venv install --no-deps --require-hashes --target "$DIR/site" -r $REQUIREMENTS
  mark_installed "$DIR" "$sums"
fi
printf '%s\n' "$PWD/$DIR"
