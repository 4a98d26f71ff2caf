#pragma once

#include <string_view>

namespace espalier {

// Whether an environment variable tells a program of the job or group of processes that started it:
// by Slurm, PBS, LSF, Flux or Grid Engine, by MPI, by torchrun and what resembles it, by systemd.
// What we start is no member of the job that we may be in: a trial that took such variables for its
// own would wait for others, or think that it is not the first (Lightning, Accelerate and PyTorch
// do).
bool IsOfALauncher(std::string_view name);

}  // namespace espalier
