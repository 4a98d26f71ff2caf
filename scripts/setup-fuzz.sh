#!/usr/bin/env bash
# Installs what the preset `fuzz` is built by, beside what scripts/setup.sh installs: clang and its runtime, with
# libFuzzer, of Debian. As root, or with sudo. A second run does nothing.
# usage: scripts/setup-fuzz.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

PACKAGES=(clang-14 libclang-rt-14-dev)

missing=()
for package in "${PACKAGES[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  run=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then run=(sudo "${run[@]}"); fi
  apt() { "${run[@]}" apt-get -q -y "$@"; }
  apt update && need_space_for_packages apt "${missing[@]}" && apt install --no-install-recommends "${missing[@]}" ||
    stop_with "apt-get could not install ${missing[*]}" "The lines above say why."
fi
