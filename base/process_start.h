#pragma once

#include <sys/types.h>

#include <string>

namespace espalier {

// Clock ticks from the machine's start to the process's. Numbers of processes are used again;
// number and start together name one process for ever. An exec changes neither. Empty: there is no
// such process.
std::string ProcessStart(pid_t pid);

}  // namespace espalier
