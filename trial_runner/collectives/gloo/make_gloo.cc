// Collectives over Gloo, on a GPU with those of the CUDA library: rows of make_collectives.cc.

#include "base/status.h"
#include "trial_runner/collectives/cuda/cuda_library.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"
#include "trial_runner/collectives/rendezvous/network_interface.h"

namespace espalier::implementations {

namespace {

absl::StatusOr<std::unique_ptr<Collectives>> OverGloo(const CollectivesOptions& options,
                                                      DeviceTransport transport) {
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Collectives> host, MakeGlooCollectives(options));
  if (options.device == CollectiveBuffer::kHost) return host;
  ESPALIER_ASSIGN_OR_RETURN(const CudaLibrary* const cuda, LoadCudaLibrary());
  CollectivesOptions with_interface = options;
  if (options.interface.empty()) with_interface.interface = InterfaceOf(options.host);
  return cuda->make_collectives(std::move(host), with_interface, transport);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collectives>> MakeGloo(const CollectivesOptions& options) {
  return OverGloo(options, DeviceTransport::kThroughHost);
}

absl::StatusOr<std::unique_ptr<Collectives>> MakeNccl(const CollectivesOptions& options) {
  if (options.device == CollectiveBuffer::kHost) {
    return absl::InvalidArgumentError(
        "collectives \"nccl\" need a GPU, and none is assigned to this replica: want \"gloo\"");
  }
  return OverGloo(options, DeviceTransport::kNccl);
}

}  // namespace espalier::implementations
