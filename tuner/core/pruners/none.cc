#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

// Keeps every trial to its end, whatever it reports.
class None : public Pruner {
 public:
  PruneVerdict Judge(const PrunerInput&) const override { return {}; }
  bool takes_objectives() const override { return true; }
};

}  // namespace

PluginRow<Pruner> NoneRow() {
  return {{.name = "none", .summary = "keeps every trial to its end"},
          [](const OptionValues&) { return std::make_unique<None>(); }};
}

}  // namespace espalier::pruners
