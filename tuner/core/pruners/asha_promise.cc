#include "tuner/core/pruners/asha_promise.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/base/status.h"
#include "tuner/core/pruners/asha.h"
#include "tuner/core/pruners/promise.h"

namespace espalier {

namespace {

constexpr double kPromiseFrom = 9;

class AshaPromise : public Pruner {
 public:
  AshaPromise(std::unique_ptr<Pruner> asha, std::unique_ptr<Pruner> promise)
      : asha_(std::move(asha)), promise_(std::move(promise)) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    PruneVerdict verdict = asha_->Judge(input);
    return verdict.prune ? verdict : promise_->Judge(input);
  }

 private:
  std::unique_ptr<Pruner> asha_;
  std::unique_ptr<Pruner> promise_;
};

constexpr std::array<std::string_view, 3> kOfAsha = {"min_steps", "eta", "max_steps"};
constexpr std::array<std::string_view, 5> kOfPromise = {"promise_from", "threshold", "share",
                                                        "min_trials", "best_k"};

template <std::size_t n>
bool IsOneOf(const std::array<std::string_view, n>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromise(const Options& options) {
  Options asha;
  Options promise = {{"min_steps", kPromiseFrom}};
  for (const auto& [name, value] : options) {
    if (IsOneOf(kOfAsha, name)) {
      asha[name] = value;
    } else if (IsOneOf(kOfPromise, name)) {
      promise[name == "promise_from" ? "min_steps" : name] = value;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("pruner \"asha_promise\" option \"", name, "\" is unknown; known are ",
                       absl::StrJoin(kOfAsha, ", "), ", ", absl::StrJoin(kOfPromise, ", ")));
    }
  }
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> first, MakeAsha(asha));
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> second, MakePromise(promise));
  return std::make_unique<AshaPromise>(std::move(first), std::move(second));
}

}  // namespace espalier
