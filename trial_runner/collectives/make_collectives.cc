#include <string_view>

#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

namespace implementations {

absl::StatusOr<std::unique_ptr<Collectives>> MakeGloo(const CollectivesOptions& options);
absl::StatusOr<std::unique_ptr<Collectives>> MakeNccl(const CollectivesOptions& options);

}  // namespace implementations

namespace {

struct Implementation {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<Collectives>> (*make)(const CollectivesOptions& options);
};

constexpr Implementation kImplementations[] = {{"gloo", implementations::MakeGloo},
                                               {"nccl", implementations::MakeNccl}};

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
