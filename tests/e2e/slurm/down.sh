#!/usr/bin/env bash
# down.sh FOLDER [daemons]: ends the jobs and daemons that up.sh has started, or the latter alone. They are
# killed: what they would write down goes with the folder.
set -u
folder=${1:?usage: down.sh FOLDER [daemons]}
export SLURM_CONF=$folder/slurm.conf
end() {
  local file pid
  for file in "$@"; do
    if [[ ! -e $file ]]; then continue; fi
    pid=$(<"$file")
    kill -9 "$pid" 2>/dev/null
    while kill -0 "$pid" 2>/dev/null && [[ $(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null) != Z ]]; do sleep 0.02; done
    rm -f "$file"
  done
}
no_jobs() { [[ -z $(timeout 10 squeue -h 2>/dev/null) ]]; }
if [[ ${2:-} != daemons ]]; then
  timeout 10 scancel --full --signal=KILL --user="$(id -u)" 2>/dev/null
  timeout 10 scancel --user="$(id -u)" 2>/dev/null
  for ((look = 0; look < 60; ++look)); do
    if no_jobs; then break; fi
    sleep 0.05
  done
fi
end "$folder"/slurmd.*.pid "$folder"/slurmctld.pid
if [[ ${2:-} != daemons ]]; then end "$folder"/munge/munged.pid; fi
exit 0
