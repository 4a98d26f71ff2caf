#!/usr/bin/env bash
# Installs the DeepSpeed that trials are launched with by tests and a benchmark, beside the accelerate and Lightning of
# scripts/setup-integrations.sh and the torch of .deps/venv, in .deps/launchers. Prints the folder: in its venv all of them
# can be imported. DeepSpeed compiles a library when it first runs: in FOLDER/extensions, where TORCH_EXTENSIONS_DIR says
# so. A second run does nothing.
# usage: scripts/setup-launchers.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

REQUIREMENTS=scripts/launchers-requirements.txt
DIR=.deps/launchers

install() {
  # DeepSpeed's own set-up asks the torch that is there, and compiles nothing.
  make_venv "$DIR" --no-deps --require-hashes --only-binary :all: -r <(grep -v deepspeed "$REQUIREMENTS")
  see_torch "$DIR" integrations/site
  DS_ACCELERATOR=cpu DS_BUILD_OPS=0 pip_of "$DIR/venv" install --no-deps --require-hashes --no-build-isolation \
    -r <(grep deepspeed "$REQUIREMENTS")
}

scripts/setup-integrations.sh >&2
install_pinned launchers "$REQUIREMENTS" install
