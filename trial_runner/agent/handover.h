#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "handover.pb.h"

namespace espalier {

// The formats of AgentHandover that this release writes and reads. A change of its meaning makes a
// new one; kOldestHandoverFormat follows when no supported release writes the older any more.
inline constexpr std::uint32_t kHandoverFormat = 1;
inline constexpr std::uint32_t kOldestHandoverFormat = 1;

// Writes the hand-over to a file without a name. The file is closed by exec unless PassOn is
// called.
absl::StatusOr<FileDescriptor> WriteHandover(const v1::AgentHandover& handover);

// Reads a hand-over from /proc/self/fd/N, or from the same of the process that offers it. Fails
// where the format is not ours; the error names both releases and what to do.
absl::StatusOr<v1::AgentHandover> ReadHandover(const std::string& path);

// Closes the file, once all in it has been taken over.
void ForgetHandover(const std::string& path);

// Every descriptor that the next program in this process needs.
std::vector<int> DescriptorsOf(const v1::AgentHandover& handover);

// Becomes another program: same process, so its children stay its children. All descriptors are
// closed but the standard ones and `kept`; signals are blocked until the program unblocks them.
// To be called by the thread that has started the children: the others end, and with a thread end
// the children that it has started (PR_SET_PDEATHSIG). Returns only if it could not.
absl::Status Become(const std::string& executable, const std::vector<std::string>& arguments,
                    const std::vector<int>& kept);

// Keeps a descriptor that was taken over from being inherited by other programs.
void CloseOnExec(const v1::AgentHandover& handover);

}  // namespace espalier
