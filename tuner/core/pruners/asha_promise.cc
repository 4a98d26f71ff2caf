#include "tuner/core/pruners/asha_promise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/base/status.h"
#include "tuner/core/pruners/asha.h"
#include "tuner/core/pruners/promise.h"

namespace espalier {

namespace {

constexpr double kRisk = 0.16;  // whom a rung let through may be risked more freely

class AshaPromise : public Pruner {
 public:
  AshaPromise(std::unique_ptr<Pruner> asha, std::unique_ptr<Pruner> promise, std::int64_t from)
      : asha_(std::move(asha)), promise_(std::move(promise)), from_(from) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    const bool by_rank = input.trial.points.back().step < from_;
    return by_rank ? asha_->Judge(input) : promise_->Judge(input);
  }

 private:
  std::unique_ptr<Pruner> asha_;
  std::unique_ptr<Pruner> promise_;
  std::int64_t from_;
};

constexpr std::array<const char*, 2> kOfAsha = {"min_steps", "eta"};
constexpr std::array<const char*, 5> kOfPromise = {"threshold", "risk", "cost_weight", "min_trials",
                                                   "best_k"};

template <std::size_t n>
bool IsOneOf(const std::array<const char*, n>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromise(const Options& options) {
  Options asha = {{"min_steps", 1}, {"eta", 3}};
  Options promise = {{"risk", kRisk}};
  std::int64_t from = 0;
  for (const auto& [name, value] : options) {
    if (IsOneOf(kOfAsha, name)) {
      asha[name] = value;
    } else if (IsOneOf(kOfPromise, name)) {
      promise[name] = value;
    } else if (name != "promise_from") {
      return absl::InvalidArgumentError(absl::StrCat(
          "pruner \"asha_promise\" option \"", name, "\" is unknown; known are promise_from, ",
          absl::StrJoin(kOfAsha, ", "), ", ", absl::StrJoin(kOfPromise, ", ")));
    } else if (!(value >= 0 && value <= 1e15 && value == std::floor(value))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pruner \"asha_promise\" option \"promise_from\": needs a whole number >= 0, got ",
          value));
    } else {
      from = static_cast<std::int64_t>(value);
    }
  }
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> first, MakeAsha(asha));
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> second, MakePromise(promise));
  if (from == 0) from = static_cast<std::int64_t>(asha.at("min_steps") * asha.at("eta"));
  return std::make_unique<AshaPromise>(std::move(first), std::move(second), from);
}

}  // namespace espalier
