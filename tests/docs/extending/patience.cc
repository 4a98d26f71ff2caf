#include <cmath>

#include "absl/strings/str_format.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {
namespace {

// Ends a trial that has not become better for a while.
class Patience final : public Pruner {
 public:
  explicit Patience(std::int64_t reports) : reports_(reports) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    double best = NAN;  // every number is better
    std::int64_t since = 0;
    for (const IntermediateValue& point : input.trial.points) {
      const bool better = Better(input.direction, point.value, best);
      if (better) best = point.value;
      since = better ? 0 : since + 1;
    }
    if (since < reports_) return {};
    return {PruneAction::kPrune, absl::StrFormat("nothing better in %d reports", since)};
  }

 private:
  std::int64_t reports_;
};

}  // namespace

PluginRow<Pruner> PatienceRow() {
  return {{.name = "patience",
           .summary = "ends a trial that has not become better for a while",
           .options = {{.name = "reports",
                        .default_value = 10,
                        .least = 1,
                        .whole = true,
                        .meaning = "reports in a row without a better value"}}},
          [](const OptionValues& options) {
            return std::make_unique<Patience>(options.Whole("reports"));
          }};
}

}  // namespace espalier::pruners
