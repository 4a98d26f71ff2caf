#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/cuda_library.h"

namespace espalier {

// Collectives for GPU `options.device`, over `host`, which carries what lies in host memory and
// through which the members agree. Device memory goes by NCCL where `transport` allows it and each
// member has a GPU of its own, and otherwise through pinned host memory and `host`.
//
// A member whose group is given up revokes its communicator: the operations under way end, and the
// next group, if it is a part of the old one, shrinks the communicator. Otherwise a thread aborts
// it.
absl::StatusOr<std::unique_ptr<Collectives>> MakeCudaCollectives(std::unique_ptr<Collectives> host,
                                                                 const CollectivesOptions& options,
                                                                 DeviceTransport transport);

}  // namespace espalier
