#include "tuner/core/pruners/pruner.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/pruners/asha.h"
#include "tuner/core/pruners/asha_promise.h"
#include "tuner/core/pruners/asha_promote.h"
#include "tuner/core/pruners/hyperband.h"
#include "tuner/core/pruners/median.h"
#include "tuner/core/pruners/none.h"
#include "tuner/core/pruners/promise.h"

namespace espalier {

namespace {

using Factory = absl::StatusOr<std::unique_ptr<Pruner>> (*)(const Options&);

struct PrunerRow {
  std::string_view name;
  Factory make;
};

constexpr std::array kPruners = {
    PrunerRow{"none", MakeNone},
    PrunerRow{"median", MakeMedian},
    PrunerRow{"asha", MakeAsha},
    PrunerRow{"asha_promote", MakeAshaPromote},
    PrunerRow{"hyperband", MakeHyperband},
    PrunerRow{"promise", MakePromise},
    PrunerRow{"asha_promise", MakeAshaPromise},
};

}  // namespace

std::vector<std::string> PrunerNames() {
  std::vector<std::string> names;
  for (const PrunerRow& row : kPruners) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Pruner>> MakePruner(std::string_view name, const Options& options) {
  for (const PrunerRow& row : kPruners) {
    if (row.name == name) return row.make(options);
  }
  return absl::InvalidArgumentError(absl::StrCat("pruner \"", std::string(name),
                                                 "\" is unknown; known are ",
                                                 absl::StrJoin(PrunerNames(), ", ")));
}

}  // namespace espalier
