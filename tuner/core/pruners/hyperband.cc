#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/pruners/rungs.h"

namespace espalier::pruners {

namespace {

constexpr std::size_t kMostBrackets = 8;  // the cycle in which trials are dealt stays short

// The first rung of each bracket, the earliest first, and how many trials in a cycle it gets.
struct Bracket {
  std::int64_t first_rung = 1;
  std::int64_t trials = 1;
};

std::vector<Bracket> MakeBrackets(const Rungs& rungs) {
  std::vector<Bracket> brackets;
  if (rungs.max_steps == 0) return {{rungs.min_steps, 1}};
  std::int64_t rung = rungs.max_steps;
  while (rung >= rungs.min_steps && rung >= 1 && brackets.size() < kMostBrackets) {
    brackets.push_back({rung, 1});
    rung /= rungs.eta;
  }
  const auto count = static_cast<double>(brackets.size());
  for (std::size_t s = 0; s < brackets.size(); ++s) {
    const auto depth = static_cast<double>(s);
    brackets[s].trials = static_cast<std::int64_t>(
        std::ceil(count / (depth + 1) * std::pow(static_cast<double>(rungs.eta), depth)));
  }
  std::reverse(brackets.begin(), brackets.end());
  return brackets;
}

// The bracket of a trial: of those that are most behind their share, the earliest.
std::size_t BracketOf(std::int64_t trial_number, const std::vector<Bracket>& brackets) {
  if (brackets.size() == 1) return 0;
  std::int64_t cycle = 0;
  for (const Bracket& bracket : brackets) cycle += bracket.trials;
  std::vector<std::int64_t> dealt(brackets.size(), 0);
  std::size_t chosen = 0;
  for (std::int64_t n = 0; n <= trial_number % cycle; ++n) {
    std::int64_t most = INT64_MIN;
    for (std::size_t b = 0; b < brackets.size(); ++b) {
      const std::int64_t behind = brackets[b].trials * (n + 1) - dealt[b] * cycle;
      if (behind > most) {
        most = behind;
        chosen = b;
      }
    }
    ++dealt[chosen];
  }
  return chosen;
}

// Hyperband (Li et al., JMLR 2018), run asynchronously: brackets that begin to halve early and keep
// few, or late and keep many, so that nothing rests on how much an early value says. With R the
// length of a trial, bracket s has its first rung at R / eta^s, down to min_steps or to the eighth
// bracket (s = 0: no trial is ended early), and a trial is judged within its own bracket as by
// "asha". Trials are dealt to brackets by their number: in every stretch of them each bracket has
// about its share, (S + 1) / (s + 1) * eta^s with S the largest s. While R is unknown there is one
// bracket, that of "asha".
class Hyperband : public Pruner {
 public:
  explicit Hyperband(Rungs rungs) : rungs_(rungs) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    Rungs rungs = rungs_;
    if (rungs.max_steps == 0) rungs.max_steps = std::max(input.max_step, std::int64_t{0});
    if (rungs.max_steps < rungs.min_steps) rungs.max_steps = 0;
    const std::vector<Bracket> brackets = MakeBrackets(rungs);
    const std::size_t own = BracketOf(input.trial.trial_number, brackets);
    rungs.min_steps = brackets[own].first_rung;
    if (!rungs.ReachedByNewest(input.trial)) return {};
    std::vector<Curve> others;
    for (const Curve& other : input.others) {
      if (BracketOf(other.trial_number, brackets) == own) others.push_back(other);
    }
    PruneVerdict verdict = StopBelowTop(rungs, input, others);
    if (verdict.action == PruneAction::kPrune && brackets.size() > 1) {
      verdict.reason += " of the bracket from step " + std::to_string(rungs.min_steps);
    }
    return verdict;
  }

 private:
  Rungs rungs_;
};

std::vector<PluginOption> BracketOptions() {
  std::vector<PluginOption> options = RungOptions();
  for (PluginOption& option : options) {
    if (option.name != "max_steps") continue;
    option.meaning = "steps of a full trial; 0: the study's max_step; one bracket if unknown";
  }
  return options;
}

}  // namespace

PluginRow<Pruner> HyperbandRow() {
  return {{.name = "hyperband",
           .summary = "ASHA in brackets, which start halving early or late (JMLR 2018)",
           .options = BracketOptions()},
          [](const OptionValues& options) -> absl::StatusOr<std::unique_ptr<Pruner>> {
            ESPALIER_ASSIGN_OR_RETURN(const Rungs rungs, ReadRungs(options));
            return std::make_unique<Hyperband>(rungs);
          }};
}

}  // namespace espalier::pruners
