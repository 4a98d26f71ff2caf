#!/usr/bin/env bash
# The whole of Espalier on one machine, from a bare clone: tunes a small convolutional net on the
# real Fashion-MNIST with elastic trials, tests the best one on images that the study never saw,
# and leaves the record of the run in demo/. Its last line is one JSON object.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

STUDY_FILE=examples/fashion_mnist/study.json
STUDY=fashion_mnist
OUT=demo
DB=$OUT/espalier.db
BIN=build/release/bin

if (($#)); then
  printf 'usage: scripts/demo.sh\n\nTunes %s and leaves database and report in %s/.\n' "$STUDY_FILE" "$OUT"
  if [[ $1 == -h || $1 == --help ]]; then exit 0; else exit 2; fi
fi

heading "set-up"
scripts/setup.sh

heading "build"
build_preset release tuner fashion_mnist || stop_with "the build failed, see above"

if [[ -e $OUT ]]; then
  heading "removing $OUT/ of an earlier run: this one starts afresh"
  rm -rf "$OUT"
fi
mkdir -p "$OUT"

heading "tuning"
"$BIN/tuner" run "$STUDY_FILE" --dir "$OUT" || stop_with "the study did not end well, see above" \
  "Its record so far: $BIN/tuner show $STUDY --db $DB"

heading "record"
"$BIN/tuner" export "$STUDY" --db "$DB" --format json >"$OUT/study.json"
"$BIN/tuner" report "$STUDY" --db "$DB" --out "$OUT/report.html"
printf 'report: %s\n' "$OUT/report.html"

heading "test of the best trial on the untouched test images"
checkpoint=$(python3 scripts/demo_summary.py --best-checkpoint "$OUT/study.json")
"$BIN/fashion_mnist" --evaluate "$checkpoint" | tee "$OUT/test.txt" ||
  stop_with "the example could not evaluate $checkpoint, see above"
# The accuracy is the last number that it prints.
test_accuracy=$(grep -oE '[0-9]*\.[0-9]+' "$OUT/test.txt" | tail -n 1) ||
  stop_with "the example printed no accuracy"

heading "done"
python3 scripts/demo_summary.py --test "$test_accuracy" --seconds "$SECONDS" "$OUT/study.json"
