#pragma once

#include <string>

namespace espalier {

// What keeps this process from being one of several that are forked from one which has come to the
// same point of the program: "it has 2 threads". Empty: nothing that can be seen from within. For
// processes that an agent has started, before they use their control socket.
std::string ForkObstacle();

// Where an agent has started this process to be forked into replicas (kZygoteVariable): says
// whether it can be, forks at each order, and ends with the agent. Returns in the replicas, each of
// which is the agent's own child by then and has its own environment, folder, output and control
// socket, as one that was started by itself has them. Returns at once in all other processes.
//
// What comes over the socket is written down at trial_runner/agent/zygotes/zygote.h.
void BeForked();

}  // namespace espalier
