#include "allocator/policies/policy.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/policies/fixed.h"
#include "allocator/policies/promise_goodput.h"

namespace espalier {

namespace {

using Factory = absl::StatusOr<std::unique_ptr<Policy>> (*)(const Options&);

struct PolicyRow {
  std::string_view name;
  Factory make;
};

constexpr std::array kPolicies = {
    PolicyRow{"fixed", MakeFixed},
    PolicyRow{"promise_goodput", MakePromiseGoodput},
};

}  // namespace

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyRow& row : kPolicies) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Options& options) {
  for (const PolicyRow& row : kPolicies) {
    if (row.name == name) return row.make(options);
  }
  return absl::InvalidArgumentError(absl::StrCat("policy \"", std::string(name),
                                                 "\" is unknown; known are ",
                                                 absl::StrJoin(PolicyNames(), ", ")));
}

std::string NameOf(const Job& job) {
  return job.name.empty() ? absl::StrCat("trial ", job.id.value) : job.name;
}

std::string NameOf(const NodeCapacity& node) {
  return node.name.empty() ? absl::StrCat("node ", node.id.value) : node.name;
}

}  // namespace espalier
