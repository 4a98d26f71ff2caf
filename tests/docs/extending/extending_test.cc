// The examples of docs/extending.md do what the page says, in a table of each kind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "allocator/policies/policy.h"
#include "allocator/pool_size/pool_size.h"
#include "tests/allocator/pools.h"
#include "tests/base/plugin_rows.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/server/engines/engines.h"

namespace espalier {

namespace samplers {
PluginRow<Sampler> ReplicateRow();
}
namespace pruners {
PluginRow<Pruner> PatienceRow();
}
namespace policies {
PluginRow<Policy> EldestRow();
}
namespace pool_size_rules {
PluginRow<PoolSizeRule> PerTrialRow();
}
namespace engines {
PluginRow<Engine, NodeAgents> SpoolRow();
}

namespace {

namespace fs = std::filesystem;

// The only row of a table, made with these options.
template <typename Product, typename... Context>
std::unique_ptr<Product> MakeOnly(const PluginRow<Product, Context...>& row, const Options& options,
                                  const Context&... context) {
  const PluginTable<Product, Context...> table("example", {row});
  ExpectTold(table.Infos());
  auto made = table.Make(row.info.name, options, context...);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(Extending, TheSamplerRepeatsTheBestTrialNowAndThen) {
  const auto sampler = MakeOnly(samplers::ReplicateRow(), {{"every", 3}});
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"lr": {"_type": "loguniform", "_value": [0.001, 1]}})");
  const std::map<double, Parameters> tried = {{0.5, {{"lr", ParameterValue(0.1)}}},
                                              {0.2, {{"lr", ParameterValue(0.01)}}}};
  std::vector<Observation> ended;
  for (const auto& [value, parameters] : tried) {
    ended.push_back({.trial_number = std::ssize(ended), .parameters = &parameters, .value = value});
  }
  Random random(1);
  EXPECT_EQ(sampler->Suggest({space, Direction::kMinimize, ended, {}, 2}, random), tried.at(0.2));
  EXPECT_EQ(sampler->Suggest({space, Direction::kMaximize, ended, {}, 5}, random), tried.at(0.5));
  const auto drawn = sampler->Suggest({space, Direction::kMinimize, ended, {}, 3}, random);
  ASSERT_TRUE(drawn);
  EXPECT_TRUE(space.Validate(*drawn).ok());
  EXPECT_NE(drawn, tried.at(0.2));
}

TEST(Extending, ThePrunerEndsATrialThatDoesNotBecomeBetter) {
  const auto pruner = MakeOnly(pruners::PatienceRow(), {{"reports", 3}});
  std::vector<IntermediateValue> points;
  const auto verdict = [&](double value) {
    points.emplace_back();
    points.back().step = std::ssize(points);
    points.back().value = value;
    return pruner->Judge({Direction::kMinimize, Curve{.points = points}, {}});
  };
  for (const double value : {0.9, 0.5, 0.6, 0.5})
    EXPECT_EQ(verdict(value).action, PruneAction::kKeep);
  const PruneVerdict last = verdict(0.7);
  EXPECT_EQ(last.action, PruneAction::kPrune);
  EXPECT_EQ(last.reason, "nothing better in 3 reports");
}

TEST(Extending, ThePolicyGivesWhatIsFreeToTheEldest) {
  const auto policy = MakeOnly(policies::EldestRow(), {{"most", 5}});
  const Pool pool{{Node(1, 8)},
                  {RunningJob(2, {{NodeId(1), 1}}, 0.9), RunningJob(1, {{NodeId(1), 1}}, 0.1)}};
  const auto held = After(pool, policy->Allocate(pool));
  EXPECT_EQ(Total(held.at(TrialId(1))), 5);
  EXPECT_EQ(Total(held.at(TrialId(2))), 3);
}

TEST(Extending, ThePoolSizeRuleWantsANodeForSoManyTrials) {
  const auto rule = MakeOnly(pool_size_rules::PerTrialRow(), {{"trials_per_node", 2}});
  const Pool pool{{}, {WaitingJob(1)}};
  PoolSizeRequest request{
      .pool = pool, .demand = {{StudyId(1), {.configurations = 4}}}, .node = {.max_nodes = 10}};
  EXPECT_EQ(rule->Decide(request).nodes, 3);
  EXPECT_EQ(rule->Decide(request).reason, "3 nodes for 5 trials");
  request.node.max_nodes = 2;
  EXPECT_EQ(rule->Decide(request).nodes, 2);
}

TEST(Extending, TheEngineLeavesACommandForEachNodeThatIsWanted) {
  const ScratchFolder folder;
  const auto engine =
      MakeOnly(engines::SpoolRow(), {}, NodeAgents{"tuner", {"--slots", "4"}, folder.path()});
  engine->StartNode("pool-1");
  EXPECT_FALSE(fs::exists(folder.File("pool-1.sh"))) << "it has nowhere to dial yet";
  engine->Open("10.0.0.1:7077", "");
  engine->StartNode("pool-2");
  std::ifstream file(folder.File("pool-1.sh"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "tuner agent --join 10.0.0.1:7077 --name pool-1 --slots 4\n");
  engine->ReleaseNode("pool-1");
  EXPECT_FALSE(fs::exists(folder.File("pool-1.sh")));
  EXPECT_TRUE(fs::exists(folder.File("pool-2.sh")));
  engine->Stop();
  engine->StartNode("pool-3");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace espalier
