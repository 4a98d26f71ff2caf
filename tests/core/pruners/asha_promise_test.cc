#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLast = 27;

std::vector<double> Falling(double end, std::int64_t steps) {
  std::vector<double> values;
  for (std::int64_t step = 1; step <= steps; ++step) {
    values.push_back(end + 0.5 / static_cast<double>(step));
  }
  return values;
}

PruneVerdict JudgeAshaPromise(const Options& options, const Curve& trial, const Curves& others) {
  const auto pruner = MakePruner("asha_promise", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  return (*pruner)->Judge({Direction::kMinimize, trial, others.all(), kLast, 1});
}

TEST(AshaPromise, EndsByRankAtARung) {
  Curves others;
  for (int i = 0; i < 6; ++i) others.Add(Falling(0.1, 3), false);
  Curves mine;
  const PruneVerdict verdict = JudgeAshaPromise({}, mine.Add(Falling(0.4, 1), false), others);
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_THAT(verdict.reason, HasSubstr("not among the best 1/3"));
}

TEST(AshaPromise, EndsTheHopelessBetweenRungsFromItsStepOn) {
  Curves others;
  for (int i = 0; i < 8; ++i) others.Add(Falling(0.1 + 0.001 * i, kLast), true);
  Curves early;
  const Curve& young = early.Add(Falling(0.3, 5), false);
  EXPECT_NE(JudgeAshaPromise({{"promise_from", 6}}, young, others).action, PruneAction::kPrune)
      << "no rung, too early";
  EXPECT_EQ(JudgeAshaPromise({}, young, others).action, PruneAction::kPrune)
      << "beyond the second rung";
  EXPECT_NE(JudgeAshaPromise({{"min_steps", 2}}, young, others).action, PruneAction::kPrune)
      << "that is at 6";
  Curves late;
  const Curve& hopeless = late.Add(Falling(0.3, 18), false);
  const PruneVerdict verdict = JudgeAshaPromise({}, hopeless, others);
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_THAT(verdict.reason, HasSubstr("chance to end among the best 1"));
  EXPECT_NE(JudgeAshaPromise({{"promise_from", 20}}, hopeless, others).action, PruneAction::kPrune);
  // At step 9 of 27 it is the model that speaks, not the rank.
  Curves rung;
  EXPECT_THAT(JudgeAshaPromise({}, rung.Add(Falling(0.3, 9), false), others).reason,
              HasSubstr("chance"));
}

PluginInfo InfoOf(std::string_view name) {
  for (PluginInfo& info : Pruners().Infos()) {
    if (info.name == name) return std::move(info);
  }
  ADD_FAILURE() << name;
  return {};
}

// The option of the pruner that has it; null where it has none.
const PluginOption* OptionOf(const PluginInfo& pruner, std::string_view name) {
  for (const PluginOption& option : pruner.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

TEST(AshaPromise, TakesItsPartsOptionsAsTheyDo) {
  const PluginInfo asha = InfoOf("asha");
  const PluginInfo promise = InfoOf("promise");
  const PluginInfo both = InfoOf("asha_promise");
  for (const PluginOption& option : both.options) {
    SCOPED_TRACE(std::string(option.name));
    const PluginOption* part = OptionOf(asha, option.name);
    if (part == nullptr) part = OptionOf(promise, option.name);
    if (part == nullptr) continue;
    EXPECT_EQ(option.Range(), part->Range());
    EXPECT_EQ(option.meaning, part->meaning);
    if (option.name == "risk") continue;
    EXPECT_EQ(option.default_value, part->default_value);
  }
}

TEST(AshaPromise, NamesItsOptions) {
  EXPECT_EQ(std::string(MakePruner("asha_promise", {{"patience", 1}}).status().message()),
            "pruner \"asha_promise\" has no option \"patience\"; it has promise_from, min_steps, "
            "eta, threshold, risk, cost_weight, min_trials, best_k");
  EXPECT_EQ(std::string(MakePruner("asha_promise", {{"promise_from", 2.5}}).status().message()),
            "pruner \"asha_promise\": option \"promise_from\" needs a whole number >= 0, got 2.5");
  EXPECT_FALSE(MakePruner("asha_promise", {{"eta", 1}}).ok());
  EXPECT_FALSE(MakePruner("asha_promise", {{"threshold", 2}}).ok());
}

}  // namespace
}  // namespace espalier
