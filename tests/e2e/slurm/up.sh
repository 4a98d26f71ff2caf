#!/usr/bin/env bash
# up.sh FOLDER NODES GPUS: a Slurm on this machine, in a folder of its own: one controller, so many
# nodes (n1, n2, ...) of four CPUs with so many GPUs that are none, and two partitions: low, and
# high, which preempts it with five seconds' notice. Needs Debian's packages (scripts/setup.sh
# --tests). FOLDER/slurm.conf is what SLURM_CONF is to name. down.sh ends it.
set -euo pipefail
folder=${1:?usage: up.sh FOLDER NODES GPUS} nodes=${2:-4} gpus=${3:-2}
host=$(hostname -s) user=$(id -un)
export SLURM_CONF=$folder/slurm.conf PATH=$PATH:/usr/sbin

# failed WHAT [DAEMON]: the end, with what the daemon has written, or all have: before it has a log, and there.
failed() {
  printf '%s:\n' "$1" >&2
  tail -q -n 5 "$folder/log/"${2:-*}.{start,log} >&2 2>/dev/null
  exit 1
}

mkdir -p "$folder"/{dev,state,log,spool,munge}
chmod 755 "$folder" "$folder/munge"
for ((gpu = 0; gpu < gpus; ++gpu)); do
  mknod "$folder/dev/nvidia$gpu" c 1 3 2>/dev/null || touch "$folder/dev/nvidia$gpu"
done
echo "Name=gpu File=$folder/dev/nvidia[0-$((gpus - 1))]" >"$folder/gres.conf"
# Nothing here uses control groups. A node looks for those that there are, and does not start where there are none, as in many
# containers, unless it is told the kind.
echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"

dd if=/dev/urandom of="$folder/munge/munge.key" bs=1 count=1024 status=none
chmod 400 "$folder/munge/munge.key"
munged --force --key-file="$folder/munge/munge.key" --socket="$folder/munge/m.sock" \
  --pid-file="$folder/munge/munged.pid" --log-file="$folder/munge/munged.log" \
  --seed-file="$folder/munge/seed" 2>"$folder/log/munged.start" || failed "munged does not start" munged

# Slurm's daemons are told their ports: below those that the kernel gives away, and anew where one
# is taken.
configure() {
  local port=$((10000 + RANDOM % 15000))
  cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge/m.sock
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$port
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
GresTypes=gpu
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdTimeout=6
KillWait=3
MessageTimeout=5
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1000 Gres=gpu:$gpus State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=5
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF
}

idle() { [[ $(timeout 10 sinfo -h -p low -t idle -o %D 2>/dev/null) == "$nodes" ]]; }

# gone DAEMON: whether it is no longer there, or has not been for as long as one needs to write down who it is.
gone() {
  local pid state
  pid=$(cat "$folder/$1.pid" 2>/dev/null) || true
  if [[ -z $pid ]]; then
    grep -qsE "fatal:|Address already in use" "$folder/log/$1.log" || ((SECONDS > started + 60))
    return
  fi
  state=$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null) || return 0
  [[ $state == Z ]]
}

here=$(dirname "${BASH_SOURCE[0]}")
daemons=(slurmctld)
for ((node = 1; node <= nodes; ++node)); do daemons+=("slurmd.n$node"); done
for ((try = 0; try < 5; ++try)); do
  configure
  rm -f "$folder"/log/*
  started=$SECONDS
  slurmctld -c >"$folder/log/slurmctld.start" 2>&1 || failed "slurmctld does not start" slurmctld
  for ((node = 1; node <= nodes; ++node)); do
    mkdir -p "$folder/spool/n$node"
    daemon=slurmd.n$node
    slurmd -N "n$node" >"$folder/log/$daemon.start" 2>&1 || failed "slurmd of n$node does not start" "$daemon"
  done
  lost=
  until [[ -n $lost ]]; do
    if idle; then exit 0; fi
    for daemon in "${daemons[@]}"; do
      if gone "$daemon"; then lost=$daemon; fi
    done
    if ((SECONDS > started + 240)); then failed "the nodes are not idle after 240 s"; fi
    sleep 0.05
  done
  # Another port is all that can be tried.
  grep -qs "Address already in use" "$folder/log/$lost.log" || failed "$lost has ended" "$lost"
  "$here/down.sh" "$folder" daemons
done
failed "$lost has found no free port five times" "$lost"
