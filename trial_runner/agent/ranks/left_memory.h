#pragma once

#include <sys/types.h>

#include <string>

namespace espalier {

// Removes from `folder`, /dev/shm, what ranks that have ended have left there of the user, by where
// they met. DeepSpeed's share 66 MB of memory each on machines without GPUs, which the system keeps
// until it is removed, and which they never remove, however they end (csrc/cpu/comm/shm.cpp, where
// they are created as deepspeed_allreduce_buffer_UID_ADDRESS_PORT_RANK).
void RemoveLeftMemory(const std::string& folder, uid_t user, const std::string& address, int port);

}  // namespace espalier
