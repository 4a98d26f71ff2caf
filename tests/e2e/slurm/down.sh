#!/usr/bin/env bash
# down.sh FOLDER [daemons]: ends the jobs and daemons that up.sh has started, or the latter alone. They are
# killed: what they would write down goes with the folder.
set -u
folder=${1:?usage: down.sh FOLDER [daemons]}
export SLURM_CONF=$folder/slurm.conf
# lives PID: nobody may have buried one that has ended.
lives() { [[ -n ${1:-} ]] && kill -0 "$1" 2>/dev/null && [[ $(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null) != Z ]]; }
end() {
  local file pid
  for file in "$@"; do
    if [[ ! -e $file ]]; then continue; fi
    pid=$(<"$file")
    kill -9 "$pid" 2>/dev/null
    while lives "$pid"; do sleep 0.02; done
    rm -f "$file"
  done
}
no_jobs() { [[ -z $(timeout 10 squeue -h 2>/dev/null) ]]; }
# What asks a controller that has ended waits 10 s for it.
if [[ ${2:-} != daemons ]] && lives "$(cat "$folder/slurmctld.pid" 2>/dev/null)"; then
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
