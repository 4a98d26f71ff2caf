#include "allocator/policies/policy.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/policies/fixed.h"
#include "allocator/policies/fluid.h"
#include "allocator/policies/hypersched.h"
#include "allocator/policies/optimus.h"
#include "allocator/policies/pollux.h"
#include "allocator/policies/promise_goodput.h"
#include "allocator/policies/scaling_efficiency.h"
#include "allocator/policies/sia.h"
#include "allocator/policies/tiresias.h"
#include "allocator/policies/top_job.h"
#include "allocator/policies/utility_cost.h"

namespace espalier {

namespace {

using Factory = absl::StatusOr<std::unique_ptr<Policy>> (*)(const Options&);

struct PolicyRow {
  std::string_view name;
  Factory make;
  std::string_view description;
  bool settles = true;
  bool preempts = false;
};

constexpr std::array kPolicies = {
    PolicyRow{"fixed", MakeFixed, "each trial keeps its minimum; nothing is resized"},
    PolicyRow{"fluid", MakeFluid, "slots in proportion to the time of a lone step (MLSys 2021)"},
    PolicyRow{"hypersched", MakeHyperSched,
              "what minimums leave goes by rank of the metric, before a deadline (SoCC 2019)"},
    PolicyRow{"optimus", MakeOptimus, "each slot to the trial whose end it brings closest",
              /*settles=*/true, /*preempts=*/true},
    PolicyRow{"pollux", MakePollux,
              "genetic search for the fairest mean of speedups each minute (OSDI 2021)",
              /*settles=*/false, /*preempts=*/true},
    PolicyRow{"promise_goodput", MakePromiseGoodput,
              "the greatest promise-weighted goodput, by a knapsack over each trial's shapes"},
    PolicyRow{"scaling_efficiency", MakeScalingEfficiency,
              "a trial grows while its throughput scales well enough (MLSys 2020)"},
    PolicyRow{"sia", MakeSia,
              "the fairest choice of one row entry for each trial, in rounds (SOSP 2023)",
              /*settles=*/false, /*preempts=*/true},
    PolicyRow{"tiresias", MakeTiresias, "what each trial asks for, least attained service first",
              /*settles=*/false, /*preempts=*/true},
    PolicyRow{"top_job", MakeTopJob, "free slots go to the best trial (Ray Tune)"},
    PolicyRow{"utility_cost", MakeUtilityCost,
              "a trial grows while its earlier end is worth the slots (MLSys 2020)"},
};

}  // namespace

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyRow& row : kPolicies) names.emplace_back(row.name);
  return names;
}

std::vector<PolicyInfo> PolicyInfos() {
  std::vector<PolicyInfo> infos;
  for (const PolicyRow& row : kPolicies)
    infos.push_back({row.name, row.description, row.settles, row.preempts});
  return infos;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Options& options) {
  for (const PolicyRow& row : kPolicies) {
    if (row.name == name) return row.make(options);
  }
  return absl::InvalidArgumentError(absl::StrCat("policy \"", std::string(name),
                                                 "\" is unknown; known are ",
                                                 absl::StrJoin(PolicyNames(), ", ")));
}

}  // namespace espalier
