#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/cuda/cuda_library.h"

namespace espalier {

// Collectives for GPU `options.device`, over `host`, which carries what lies in host memory and
// through which the members agree. Device memory goes by NCCL where `transport` allows it and each
// member has a GPU of its own, and otherwise through pinned host memory and `host`.
//
// A member whose group is given up while operations are under way aborts its communicator on a
// thread, and the next group forms a new one.
absl::StatusOr<std::unique_ptr<Collectives>> MakeCudaCollectives(std::unique_ptr<Collectives> host,
                                                                 const CollectivesOptions& options,
                                                                 DeviceTransport transport);

}  // namespace espalier
