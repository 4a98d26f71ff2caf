#!/usr/bin/env bash
# Installs the Hugging Face transformers and the Lightning that tests/python/integrations trains with, for the torch of
# .deps/venv, in .deps/integrations. Prints the folder. A second run does nothing.
# usage: scripts/setup-integrations.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# All that they need but torch, numpy and what comes with these.
REQUIREMENTS=tests/python/integrations/requirements.txt
DIR=.deps/integrations

install() {
  need_space_in_deps "$DIR"
  rm -rf "$DIR"
  pip_of .deps/venv install --no-deps --require-hashes --target "$DIR/site" -r "$REQUIREMENTS"
}

[[ -x .deps/venv/bin/python3 ]] || stop_with "there is no .deps/venv with torch" "Run scripts/setup.sh before."
install_pinned integrations "$REQUIREMENTS" install
