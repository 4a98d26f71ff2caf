#!/usr/bin/env bash
# Runs a study of Espalier's own and two workers of a plain Optuna program on one pool of four slots,
# and prints in the end what held which slot when. Needs `tuner` in PATH (or its folder in ESPALIER_BIN) and a Python with
# Optuna (PYTHON). Another study file may be given, an elastic one for instance.
# usage: run.sh [STUDY.json]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
study=${1:-$here/study.json}
python=${PYTHON:-python3}
export PATH=${ESPALIER_BIN:+$ESPALIER_BIN:}$PATH
export PYTHONPATH=$here/../../adapters/optuna/python${PYTHONPATH:+:$PYTHONPATH}
if ! command -v tuner >/dev/null; then
  printf 'run.sh: no tuner in PATH; build it, and set ESPALIER_BIN to the folder it is in\n' >&2; exit 2
fi
if ! missing=$("$python" -c 'import espalier_optuna' 2>&1); then
  printf 'run.sh: %s cannot import espalier_optuna%s\nrun.sh: pip install optuna grpcio, or set PYTHON to an interpreter that has them\n' \
    "$python" "${missing:+: ${missing##*$'\n'}}" >&2
  exit 2
fi

work=$(mktemp -d)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT

# Waits until a file has a line that begins so, and prints the rest of it.
rest_of_line() {
  for _ in $(seq 600); do
    if sed -n "s|^$2||p" "$1" 2>/dev/null | grep -m 1 .; then return; fi
    sleep 0.1
  done
  printf 'run.sh: no "%s" in:\n' "$2" >&2; cat "$1" >&2; return 1
}

tuner serve --grpc 127.0.0.1:0 --http 127.0.0.1:0 --db "$work/pool.db" >"$work/service" 2>&1 &
started+=($!)
service=$(rest_of_line "$work/service" 'gRPC ')
http=$(rest_of_line "$work/service" 'HTTP http://')
tuner agent --join "$service" --http "$http" --slots 4 --name pool --dir "$work/trials" >"$work/agent" 2>&1 &
started+=($!)

printf 'a study of ours has the pool to itself\n'
tuner submit "$study" --service "$service" --wait >"$work/submit" 2>&1 &
ours=$!
sleep 2
printf 'now two workers of an Optuna program ask for slots\n'
"$python" "$here/objective.py" "$service" 1 &
first=$!
"$python" "$here/objective.py" "$service" 2 &
second=$!
wait "$first" && wait "$second"
printf 'the workers have ended; our study goes on alone\n'
wait "$ours" || { cat "$work/submit" >&2; exit 1; }

name=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["name"])' "$study")
tuner export "$name" --service "$service" --format json >"$work/ours.json"
tuner export optuna --service "$service" --format json >"$work/optuna.json"
"$python" "$here/record.py" "$work/ours.json" "$work/optuna.json"
