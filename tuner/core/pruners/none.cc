#include "tuner/core/pruners/none.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

class None : public Pruner {
 public:
  PruneVerdict Judge(const PrunerInput&) const override { return {}; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pruner>> MakeNone(const Options& options) {
  if (!options.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pruner \"none\" takes no options, got \"", options.begin()->first, "\""));
  }
  return std::make_unique<None>();
}

}  // namespace espalier
