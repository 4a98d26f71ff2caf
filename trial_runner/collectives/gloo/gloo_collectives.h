#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

// Collectives over LibTorch's Gloo, for CPU memory. Each object serves a rendezvous store on a
// port of its own for as long as it lives.
//
// Gloo itself does not let go of a waiting operation when a member stops. So the connections of an
// abandoned group are shut down, and its threads and buffers are left to a thread of its own, which
// ends when Gloo does; a process that has abandoned groups should end by _exit. Gloo writes to
// sockets that a lost member has closed: SIGPIPE is ignored from here on, unless the program
// handles it.
absl::StatusOr<std::unique_ptr<Collectives>> MakeGlooCollectives(const CollectivesOptions& options);

}  // namespace espalier
