// Real processes of a real program, resized, killed and stopped while they train.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/harness/replica_harness.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using Said = ReplicaHarness::Said;

struct Attempt {
  std::int64_t epoch = 0;
  std::multiset<std::int64_t> samples;
};

class ElasticTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "espalier-elastic-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A folder for one run's record.
  std::string NewRun(const std::string& name) const {
    const fs::path run = folder_ / name;
    fs::create_directories(run / "checkpoints");
    return run.string();
  }

  std::unique_ptr<ReplicaHarness> Harness(const std::string& run,
                                          const std::vector<std::string>& parameters,
                                          std::map<std::string, std::string> environment = {}) {
    std::vector<std::string> arguments;
    for (const std::string& parameter : parameters) {
      arguments.insert(arguments.end(), {"--set", parameter});
    }
    arguments.insert(arguments.end(), {"--set", "log=" + run});
    environment.emplace("ESPALIER_CHECKPOINT_DIR", run + "/checkpoints");
    environment.emplace("ESPALIER_TRIAL_NUMBER", "3");
    return std::make_unique<ReplicaHarness>(ELASTIC_PROBE, arguments, environment);
  }

  // The samples of each optimizer step, of the attempt that counted: the one in the highest
  // generation, since an attempt that succeeded anywhere is never repeated.
  static std::map<std::int64_t, Attempt> Steps(const std::string& run) {
    std::map<std::int64_t, std::map<std::int64_t, Attempt>> attempts;
    for (const auto& file : fs::directory_iterator(run)) {
      if (!file.is_regular_file() || file.path().filename() == "parameters") continue;
      std::ifstream in(file.path());
      for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::int64_t generation = 0;
        std::int64_t epoch = 0;
        std::int64_t step = 0;
        words >> generation >> epoch >> step;
        Attempt& attempt = attempts[step][generation];
        attempt.epoch = epoch;
        for (std::int64_t sample = 0; words >> sample;) attempt.samples.insert(sample);
      }
    }
    std::map<std::int64_t, Attempt> counted;
    for (auto& [step, by_generation] : attempts) counted[step] = by_generation.rbegin()->second;
    return counted;
  }

  // Each epoch has dealt each sample exactly once, and steps are numbered without gap.
  static void ExpectEachSampleOnceAnEpoch(const std::string& run, std::int64_t samples,
                                          std::int64_t epochs) {
    const std::map<std::int64_t, Attempt> steps = Steps(run);
    std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    std::map<std::int64_t, std::multiset<std::int64_t>> dealt;
    std::int64_t next = 1;
    for (const auto& [step, attempt] : steps) {
      EXPECT_EQ(step, next++);
      dealt[attempt.epoch].insert(attempt.samples.begin(), attempt.samples.end());
    }
    ASSERT_EQ(dealt.size(), static_cast<std::size_t>(epochs));
    for (const auto& [epoch, seen] : dealt) {
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), all.begin(), all.end()))
          << "epoch " << epoch << " dealt " << seen.size() << " samples";
    }
  }

  static std::vector<double> FinalParameters(const std::string& run) {
    std::ifstream in(run + "/parameters");
    std::vector<double> values;
    for (double v = 0; in >> v;) values.push_back(v);
    EXPECT_FALSE(values.empty()) << "no parameters in " << run;
    return values;
  }

  // Reported metric by step, as the service would keep it: the first word counts.
  static std::map<std::int64_t, double> Reports(ReplicaHarness& harness) {
    std::map<std::int64_t, double> reports;
    for (const Said& said : harness.EverythingSaid()) {
      if (said.message.has_report()) {
        reports.emplace(said.message.report().step(), said.message.report().value());
      }
    }
    return reports;
  }

  static bool IsFinished(const Said& said) { return said.message.has_finished(); }

  // Waits until the newest record of the run shows this many steps begun.
  static void AwaitSteps(const std::string& run, std::int64_t count) {
    const auto patience = std::chrono::steady_clock::now() + ReplicaHarness::kPatience;
    while (true) {
      const auto steps = Steps(run);
      if (!steps.empty() && steps.rbegin()->first >= count) return;
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "no step " << count;
      std::this_thread::yield();
    }
  }

  fs::path folder_;
};

void ExpectClose(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-4) << "parameter " << i;
}

TEST_F(ElasticTraining, GrowsAndShrinksWithoutMissingOrRepeatingASample) {
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=1003", "batch_size=30", "epochs=4", "pause_us=2000"});
  const auto a = harness->Start();
  harness->AwaitReady(a);
  harness->Regroup({a});
  const auto b = harness->Start();
  const auto c = harness->Start();
  harness->AwaitReady(b);
  harness->AwaitReady(c);
  AwaitSteps(run, 5);
  harness->Regroup({a, b});
  harness->AwaitRegrouped({a});
  harness->Regroup({a, b, c});
  harness->AwaitRegrouped({a, b});
  harness->Regroup({c, a});  // the new rank 0 is another replica
  harness->AwaitRegrouped();
  EXPECT_EQ(harness->AwaitExit(b), 0);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(c), 0);
  ExpectEachSampleOnceAnEpoch(run, 1003, 4);
  EXPECT_EQ(Reports(*harness).size(), 4u);
}

TEST_F(ElasticTraining, FixedModeGivesTheSameModelWhateverTheReplicas) {
  const std::vector<std::string> parameters{"samples=500",   "batch_size=25", "epochs=3",
                                            "max_atomic=10", "pause_us=1000", "lr=0.003"};
  const std::string still = NewRun("still");
  const auto undisturbed = Harness(still, parameters);
  const auto only = undisturbed->Start();
  undisturbed->AwaitReady(only);
  undisturbed->Regroup({only});
  undisturbed->AwaitMessage("the end", IsFinished);
  undisturbed->AwaitExit(only);

  const std::string resized = NewRun("resized");
  const auto harness = Harness(resized, parameters);
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a}, false, {a});
  AwaitSteps(resized, 10);
  harness->Regroup({a, b});
  harness->AwaitRegrouped({a});
  AwaitSteps(resized, 30);
  harness->Regroup({b});
  harness->AwaitRegrouped({b});
  harness->AwaitMessage("the end", IsFinished);
  harness->AwaitExit(b);

  ExpectEachSampleOnceAnEpoch(resized, 500, 3);
  ExpectClose(FinalParameters(still), FinalParameters(resized));
  const auto reports = Reports(*undisturbed);
  const auto resized_reports = Reports(*harness);
  ASSERT_EQ(reports.size(), 3u);
  ASSERT_EQ(resized_reports.size(), 3u);
  for (const auto& [step, value] : reports) {
    EXPECT_NEAR(value, resized_reports.at(step), 1e-3 * value);
  }
}

// The service hears of a loss from the agent, and tells the survivors.
class LostReplica : public ElasticTraining, public ::testing::WithParamInterface<int> {};

TEST_P(LostReplica, SurvivorsGoOnFromMemory) {
  const int signal = GetParam();
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=900", "batch_size=30", "epochs=3", "pause_us=2000"});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 4; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  harness->AwaitRegrouped();
  AwaitSteps(run, 8);
  harness->Signal(all[0], signal);  // the reporting replica
  const double first_s = [&] {
    harness->Regroup({all[1], all[2], all[3]}, true, {all[1], all[2], all[3]});
    return harness->AwaitRegrouped();
  }();
  AwaitSteps(run, 25);
  harness->Signal(all[2], signal);
  harness->Regroup({all[3], all[1]}, true, {all[3], all[1]});
  const double second_s = harness->AwaitRegrouped();
  EXPECT_LT(first_s, 1.0);
  EXPECT_LT(second_s, 1.0);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[1]), 0);
  EXPECT_EQ(harness->AwaitExit(all[3]), 0);
  harness->Kill(all[0]);
  harness->Kill(all[2]);
  ExpectEachSampleOnceAnEpoch(run, 900, 3);
  EXPECT_EQ(Reports(*harness).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(KilledOrStopped, LostReplica, ::testing::Values(SIGKILL, SIGSTOP));

TEST_F(ElasticTraining, ASecondLossWhileFormingIsSurvived) {
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=600", "batch_size=30", "epochs=2", "pause_us=2000"});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  harness->AwaitRegrouped();
  AwaitSteps(run, 5);
  // Both are gone, but the service has heard of the first only when it speaks for the first time:
  // the survivor waits for the second in vain.
  harness->Signal(all[0], SIGSTOP);
  harness->Signal(all[1], SIGSTOP);
  harness->Regroup({all[1], all[2]}, true, {all[2]});
  harness->Regroup({all[2]}, true, {all[2]});
  harness->AwaitRegrouped({all[2]});
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[2]), 0);
  ExpectEachSampleOnceAnEpoch(run, 600, 2);
}

TEST_F(ElasticTraining, TwoRegroupsInARowEndInTheNewest) {
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=1200", "batch_size=30", "epochs=3", "pause_us=2000"});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup({all[0]}, false, {all[0]});
  AwaitSteps(run, 5);
  // The second joiner's group is announced before the first one's can have formed.
  harness->Regroup({all[0], all[1]}, false, {all[0], all[1]});
  harness->Regroup({all[0], all[1], all[2]});
  harness->AwaitRegrouped();
  harness->Regroup({all[2], all[1]}, false);
  harness->Regroup({all[1]}, false);
  harness->AwaitRegrouped();
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[1]), 0);
  ExpectEachSampleOnceAnEpoch(run, 1200, 3);
}

TEST_F(ElasticTraining, PausesIntoACheckpointAndResumesOnAnotherNumberOfReplicas) {
  const std::vector<std::string> parameters{"samples=700", "batch_size=35", "epochs=3",
                                            "pause_us=2000", "adam=true"};
  const std::string run = NewRun("run");
  std::string checkpoint;
  std::int64_t paused_at = 0;
  {
    const auto harness = Harness(run, parameters);
    const auto a = harness->Start();
    const auto b = harness->Start();
    harness->AwaitReady(a);
    harness->AwaitReady(b);
    harness->Regroup({a, b});
    AwaitSteps(run, 27);  // in the second epoch
    harness->Regroup({});
    EXPECT_EQ(harness->AwaitExit(a), 0);
    EXPECT_EQ(harness->AwaitExit(b), 0);
    for (const Said& said : harness->EverythingSaid()) {
      if (!said.message.has_checkpoint()) continue;
      checkpoint = said.message.checkpoint().path();
      paused_at = said.message.checkpoint().step();
    }
  }
  ASSERT_GE(paused_at, 27);
  ASSERT_LT(paused_at, 60);
  ASSERT_TRUE(fs::exists(checkpoint));
  const auto harness = Harness(run, parameters, {{"ESPALIER_CHECKPOINT", checkpoint}});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  harness->AwaitMessage("the end", IsFinished);
  for (const auto id : all) EXPECT_EQ(harness->AwaitExit(id), 0);
  ExpectEachSampleOnceAnEpoch(run, 700, 3);
  std::size_t kept = 0;
  for (const auto& file : fs::directory_iterator(run + "/checkpoints")) {
    EXPECT_EQ(file.path().extension(), ".pt");
    ++kept;
  }
  EXPECT_EQ(kept, 2u);
}

TEST_F(ElasticTraining, AdaptiveModeGrowsTheBatchAndKeepsEachSampleOnce) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run,
                               {"samples=6000", "batch_size=16", "max_batch_size=256",
                                "epochs=4", "pause_us=4000", "lr=0.001"},
                               {{"ESPALIER_BATCH_MODE", "adaptive"}});
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitMessage("a grown batch", [](const Said& said) {
    return said.message.has_progress() && said.message.progress().global_batch_size() > 16;
  });
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  ExpectEachSampleOnceAnEpoch(run, 6000, 4);
}

TEST_F(ElasticTraining, JoinersGetBuffersMomentsAndEarlierEvaluations) {
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=640", "batch_size=32", "epochs=4", "pause_us=2000", "adam=true",
                    "batch_norm=true", "dropout=0.1", "evaluations=2"});
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a}, false, {a});
  AwaitSteps(run, 30);
  harness->Regroup({a, b});
  harness->AwaitRegrouped();
  harness->Regroup({b});
  harness->AwaitRegrouped();
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  ExpectEachSampleOnceAnEpoch(run, 640, 4);
  EXPECT_EQ(Reports(*harness).size(), 4u);
}

TEST_F(ElasticTraining, ReplicaEndsWhenItsAgentIsGone) {
  const std::string run = NewRun("run");
  pid_t orphan_exit = 0;
  {
    const auto harness = Harness(run, {"epochs=100000", "pause_us=1000"});
    const auto a = harness->Start();
    harness->AwaitReady(a);
    harness->Regroup({a});
    AwaitSteps(run, 3);
    harness->HangUp(a);
    orphan_exit = harness->AwaitExit(a);
  }
  EXPECT_EQ(orphan_exit, 75);
}

}  // namespace
}  // namespace espalier
