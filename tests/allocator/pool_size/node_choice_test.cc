#include "allocator/pool_size/node_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/allocator/pools.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NodeTemplate Template(const std::string& name, int slots, double price, int most) {
  return {.slots = slots,
          .price_per_hour = price,
          .start_s = 5,
          .min_nodes = 0,
          .max_nodes = most,
          .name = name};
}

// What is chosen for so many configurations of one slot each.
NodeChoice Choose(const std::string& rule, const std::vector<EngineNodes>& templates,
                  int configurations, double work_left_s = 0) {
  Pool pool;
  for (const EngineNodes& of : templates) {
    for (int n = 0; n < of.nodes; ++n) pool.nodes.push_back(Node(1 + n, of.node.slots));
  }
  PoolSizeRequest request{pool, {}, {}};
  if (configurations > 0) request.demand = {{StudyId(1), {configurations, 1}}};
  request.work_left_s = work_left_s;
  auto made = MakePoolSizeRule(rule, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return ChooseNodes(**made, request, templates);
}

struct Sums {
  double price = 0;
  int work = 0;  // that so many configurations would have
};

Sums SumsOf(const NodeChoice& choice, const std::vector<EngineNodes>& templates,
            int configurations) {
  Sums sums;
  for (std::size_t t = 0; t < templates.size(); ++t) {
    sums.price += choice.nodes[t] * templates[t].node.price_per_hour;
    sums.work += choice.nodes[t] * templates[t].node.slots;
  }
  sums.work = std::min(sums.work, configurations);
  return sums;
}

TEST(NodeChoice, CostsNoMoreThanAnyTemplateAloneThatDoesAsMuch) {
  Random random(19);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::vector<EngineNodes> templates;
    for (int t = 0; t < 2 + IntBelow(random, 2); ++t) {
      const int slots = 1 + IntBelow(random, 8);
      templates.push_back(
          {Template(std::string(1, static_cast<char>('a' + t)), slots,
                    slots * (1 + IntBelow(random, 20)) / 10.0, 1 + IntBelow(random, 6))});
    }
    const int configurations = 1 + IntBelow(random, 30);
    for (const char* rule : {"utility_price", "least_cost"}) {
      SCOPED_TRACE(rule);
      const bool by_time = std::string_view(rule) == "utility_price";
      const NodeChoice choice = Choose(rule, templates, configurations);
      const Sums chosen = SumsOf(choice, templates, configurations);
      ASSERT_GT(chosen.work, 0) << choice.reason;
      for (std::size_t t = 0; t < templates.size(); ++t) {
        EXPECT_LE(choice.nodes[t], templates[t].node.max_nodes);
        const NodeChoice alone = Choose(rule, {templates[t]}, configurations);
        const Sums single = SumsOf(alone, {templates[t]}, configurations);
        if (by_time && single.work >= chosen.work) {
          EXPECT_LE(chosen.price, single.price + 1e-9) << choice.reason << "; " << alone.reason;
        }
        if (!by_time) {
          EXPECT_LE(chosen.price / chosen.work, single.price / single.work * 1.1 + 1e-9)
              << choice.reason << "; " << alone.reason;
        }
      }
    }
  }
}

TEST(NodeChoice, WithOneTemplateItIsWhatTheRuleSays) {
  const NodeChoice choice = Choose("utility_price", {{Template("", 1, 0, 4)}}, 3);
  EXPECT_THAT(choice.nodes, ElementsAre(3));
  EXPECT_THAT(choice.reason, HasSubstr("3 nodes: "));
}

class SpotAndOnDemand : public ::testing::Test {
 protected:
  std::vector<int> Chosen(int configurations) {
    NodeChoice choice = Choose("utility_price", {on_demand_, spot_}, configurations);
    reason_ = choice.reason;
    return choice.nodes;
  }

  EngineNodes on_demand_{Template("on-demand", 1, 1, 8)};
  EngineNodes spot_{Template("spot", 1, 0.3, 4)};
  std::string reason_;
};

TEST_F(SpotAndOnDemand, TheCheapComeFirstAndTheOthersForTheRest) {
  EXPECT_THAT(Chosen(3), ElementsAre(0, 3));
  EXPECT_THAT(reason_, HasSubstr("(spot 3, 0.9 an hour)"));
  EXPECT_THAT(Chosen(6), ElementsAre(2, 4));
  EXPECT_THAT(reason_, HasSubstr("(on-demand 2, spot 4, 3.2 an hour)"));
  EXPECT_THAT(Chosen(0), ElementsAre(0, 0));
}

TEST_F(SpotAndOnDemand, TheDearGoFirst) {
  on_demand_.nodes = 2;
  spot_.nodes = 4;
  EXPECT_THAT(Chosen(4), ElementsAre(0, 4));
}

TEST_F(SpotAndOnDemand, OfATemplateThatDoesNotComeNoMoreAreWanted) {
  spot_.rests = true;
  EXPECT_THAT(Chosen(3), ElementsAre(3, 0));
  spot_.nodes = 1;
  EXPECT_THAT(Chosen(3), ElementsAre(2, 1));
  on_demand_.rests = true;
  on_demand_.nodes = 1;
  EXPECT_THAT(Chosen(3), ElementsAre(1, 1));
}

TEST_F(SpotAndOnDemand, WhatIsThereIsExchangedForMoreThanALittleAlone) {
  on_demand_.nodes = 3;
  spot_.node.price_per_hour = 0.9;
  EXPECT_THAT(Chosen(3), ElementsAre(3, 0));
  spot_.node.price_per_hour = 0.5;
  EXPECT_THAT(Chosen(3), ElementsAre(0, 3));
}

TEST_F(SpotAndOnDemand, StartsAfterPreemptionsArePartOfThePrice) {
  spot_.node.start_s = 60;
  spot_.node.preemptions_per_hour = 30;
  EXPECT_THAT(Chosen(3), ElementsAre(0, 3)) << "half of its time is lost: 0.6 an hour";
  spot_.node.preemptions_per_hour = 50;
  EXPECT_THAT(Chosen(3), ElementsAre(3, 0)) << "five sixths are";
}

TEST_F(SpotAndOnDemand, TheLeastOfEachStays) {
  on_demand_.node.min_nodes = 1;
  EXPECT_THAT(Chosen(0), ElementsAre(1, 0));
  EXPECT_THAT(Chosen(3), ElementsAre(1, 2));
}

TEST_F(SpotAndOnDemand, WhereNoneCostsAnythingTheFirstIsTaken) {
  on_demand_.node.price_per_hour = spot_.node.price_per_hour = 0;
  EXPECT_THAT(Chosen(3), ElementsAre(3, 0));
}

TEST_F(SpotAndOnDemand, OwnMachinesThatCostNothingComeBeforeOthers) {
  on_demand_.node.price_per_hour = 0;
  on_demand_.node.max_nodes = 2;
  EXPECT_THAT(Chosen(5), ElementsAre(2, 3));
  for (const char* rule : {"utility_price", "least_cost"}) {
    EXPECT_LE(Choose(rule, {on_demand_, spot_}, 1).nodes[0], 1) << rule;
  }
}

TEST_F(SpotAndOnDemand, TheBandKnowsTheFirstTemplateAlone) {
  EXPECT_EQ(Choose("utility_band", {on_demand_, spot_}, 6).nodes[1], 0);
}

TEST_F(SpotAndOnDemand, ADeadlineIsMetAtTheLeastCost) {
  const Pool pool;
  PoolSizeRequest request{pool, {}, {}};
  request.demand = {{StudyId(1), {12, 1}}};
  request.work_left_s = 6000;
  request.deadline_s = 2000;
  auto rule = MakePoolSizeRule("least_cost", {});
  EXPECT_THAT(ChooseNodes(**rule, request, {on_demand_, spot_}).nodes, ElementsAre(0, 4));
  request.deadline_s = 1000;
  const NodeChoice tight = ChooseNodes(**rule, request, {on_demand_, spot_});
  EXPECT_EQ(tight.nodes[1], 4);
  EXPECT_GE(tight.nodes[0], 3) << tight.reason;
}

// Trials that have trained on both types of GPUs.
class OnGpus : public ::testing::Test {
 protected:
  OnGpus() {
    for (int j = 1; j <= 4; ++j) {
      Job job = RunningJob(j, {}, 0.5, 1);
      job.goodput = Scaling(0.1);
      job.goodput_by_gpu_type.emplace(
          "T4", GoodputModel({.alpha_c = 1e-8,
                              .beta_c = 0.005,
                              .alpha_n = 0.01,
                              .beta_n = 1e-8,
                              .alpha_r = 0.01,
                              .beta_r = 1e-8,
                              .gamma = 1},
                             {}, {.initial = 64, .max_global = 64, .max_atomic = 64}));
      job.work_left_s = 1000;
      pool_.jobs.push_back(job);
    }
  }

  std::vector<int> Chosen(double t4_price) {
    EngineNodes a100{Template("big", 1, 1, 8)};
    EngineNodes t4{Template("small", 1, t4_price, 8)};
    a100.node.gpu_type = "A100";
    t4.node.gpu_type = "T4";
    a100.node.start_s = start_s_;
    auto rule = MakePoolSizeRule("utility_price", {});
    return ChooseNodes(**rule, PoolSizeRequest{pool_, {}, {}}, {a100, t4}).nodes;
  }

  Pool pool_;
  double start_s_ = 5;
};

TEST_F(OnGpus, MeasuredSpeedIsPartOfThePrice) {
  EXPECT_THAT(Chosen(0.5), ElementsAre(4, 0)) << "a fifth of the speed for half of the price";
  EXPECT_THAT(Chosen(0.1), ElementsAre(0, 4));
}

TEST_F(OnGpus, WhatStartsMoreSlowlyThanTheWorkEndsIsLeftOut) {
  start_s_ = 2000;
  EXPECT_THAT(Chosen(0.5), ElementsAre(0, 4));
}

}  // namespace
}  // namespace espalier
