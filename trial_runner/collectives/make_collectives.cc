#include <string_view>

#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/cuda_library.h"
#include "trial_runner/collectives/gloo_collectives.h"
#include "trial_runner/collectives/network_interface.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using Make = absl::StatusOr<std::unique_ptr<Collectives>> (*)(const CollectivesOptions&);

absl::StatusOr<std::unique_ptr<Collectives>> OverGloo(const CollectivesOptions& options,
                                                      DeviceTransport transport) {
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Collectives> host, MakeGlooCollectives(options));
  if (options.device == CollectiveBuffer::kHost) return host;
  ESPALIER_ASSIGN_OR_RETURN(const CudaLibrary* const cuda, LoadCudaLibrary());
  CollectivesOptions with_interface = options;
  if (options.interface.empty()) with_interface.interface = InterfaceOf(options.host);
  return cuda->make_collectives(std::move(host), with_interface, transport);
}

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

struct Implementation {
  std::string_view name;
  Make make;
};

constexpr Implementation kImplementations[] = {{"gloo", MakeGloo}, {"nccl", MakeNccl}};

}  // namespace

absl::StatusOr<std::unique_ptr<Collectives>> MakeCollectives(const CollectivesOptions& options) {
  const bool has_gpu = options.device != CollectiveBuffer::kHost;
  const std::string name = !options.implementation.empty() ? options.implementation
                           : has_gpu                       ? "nccl"
                                                           : "gloo";
  std::string known;
  for (const Implementation& implementation : kImplementations) {
    if (implementation.name == name) return implementation.make(options);
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(implementation.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("collectives \"", name, "\": want one of ", known));
}

}  // namespace espalier
