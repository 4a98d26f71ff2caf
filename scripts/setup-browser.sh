#!/usr/bin/env bash
# Installs what the tests drive a browser with, in .deps/browser: a virtual environment with Selenium and axe-core, which
# finds what keeps people out of a page. Prints the folder. A second run does nothing.
# usage: scripts/setup-browser.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

DIR=.deps/browser
SELENIUM=selenium==4.51.0
# Its script alone is used, not Playwright, which it would bring.
AXE=axe-playwright-python==0.1.8

lock_deps browser
if ! installed_in "$DIR" "$SELENIUM" "$AXE"; then
  make_venv "$DIR" "$SELENIUM"
  pip_of "$DIR/venv" install --no-deps "$AXE"
  mark_installed "$DIR" "$SELENIUM" "$AXE"
fi
printf '%s\n' "$PWD/$DIR"
