#include "base/launcher_variables.h"

#include <algorithm>
#include <iterator>

namespace espalier {

namespace {

constexpr std::string_view kStarts[] = {
    // batch systems
    "SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SQUEUE_", "SCANCEL_", "PBS_", "LSB_", "JSM_", "SGE_",
    // MPI
    "PMI_", "PMI2_", "PMIX_", "HYDRA_", "HYDI_", "PALS_", "FLUX_TASK_", "FLUX_JOB_", "OMPI_",
    "PRTE_", "ORTE_", "MPIRUN_", "MPI_LOCAL", "MV2_COMM_WORLD_",
    // PyTorch and systemd
    "TORCHELASTIC_", "PET_", "LISTEN_FD", "WATCHDOG_"};
constexpr std::string_view kWords[] = {
    // torchrun and Horovod
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "LOCAL_SIZE", "CROSS_RANK",
    "CROSS_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME",
    "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT", "HOROVOD_CONTROLLER",
    // Grid Engine
    "PE_HOSTFILE", "NSLOTS",
    // systemd
    "NOTIFY_SOCKET", "INVOCATION_ID", "LISTEN_PID", "MAINPID", "JOURNAL_STREAM"};
// Where Slurm's own files and a job's scratch folder are, and what Hydra reads that is no launcher
// but a library of configurations.
constexpr std::string_view kKept[] = {"SLURM_CONF", "SLURM_TMPDIR", "HYDRA_FULL_ERROR"};

}  // namespace

bool IsOfALauncher(std::string_view name) {
  const auto begins = [name](std::string_view start) { return name.starts_with(start); };
  if (std::ranges::find(kKept, name) != std::end(kKept)) return false;
  return std::ranges::find(kWords, name) != std::end(kWords) ||
         std::ranges::any_of(kStarts, begins);
}

}  // namespace espalier
