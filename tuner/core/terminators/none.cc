#include "tuner/core/terminators/terminator.h"

namespace espalier::terminators {

namespace {

// Leaves a study to its limits.
class None : public Terminator {
 public:
  TerminatorVerdict Judge(const TerminatorInput&) const override { return {}; }
};

}  // namespace

PluginRow<Terminator> NoTerminatorRow() {
  return {{.name = "none", .summary = "leaves a study to its limits"},
          [](const OptionValues&) { return std::make_unique<None>(); }};
}

}  // namespace espalier::terminators
