// Real processes of a real program, resized, killed and stopped while they train.

#include <poll.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/control/replica_harness.h"
#include "tuner/base/random.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using Said = ReplicaHarness::Said;

constexpr int kLook_ms = 2;  // how often the record is looked at while waiting for it

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
      if (!file.is_regular_file() || file.path().filename() == "parameters" ||
          file.path().filename() == "stop") {
        continue;
      }
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

  // The program trains to the end of its epoch and no further.
  static void Stop(const std::string& run) { std::ofstream(run + "/stop") << "stop"; }

  // Each epoch has dealt each sample exactly once, and steps are numbered without gap. Returns the
  // number of epochs.
  static std::int64_t ExpectEachSampleOnceAnEpoch(const std::string& run, std::int64_t samples) {
    const std::map<std::int64_t, Attempt> steps = Steps(run);
    std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    std::map<std::int64_t, std::multiset<std::int64_t>> dealt;
    std::int64_t next = 1;
    for (const auto& [step, attempt] : steps) {
      EXPECT_EQ(step, next++);
      dealt[attempt.epoch].insert(attempt.samples.begin(), attempt.samples.end());
    }
    EXPECT_FALSE(dealt.empty());
    for (const auto& [epoch, seen] : dealt) {
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), all.begin(), all.end()))
          << "epoch " << epoch << " dealt " << seen.size() << " samples";
    }
    return static_cast<std::int64_t>(dealt.size());
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
      if (const auto* report = std::get_if<ReplicaReport>(&said.word)) {
        reports.emplace(report->step, report->value);
      }
    }
    return reports;
  }

  // How many steps were reported, if those are 1, 2, 3, ...
  static std::int64_t ReportedSteps(ReplicaHarness& harness) {
    const auto reports = Reports(harness);
    const auto count = static_cast<std::int64_t>(reports.size());
    EXPECT_TRUE(reports.empty() || reports.rbegin()->first == count) << "a report is missing";
    return count;
  }

  static bool IsFinished(const Said& said) {
    return std::holds_alternative<ReplicaFinished>(said.word);
  }

  // Waits until the newest record of the run shows this many steps begun.
  static void AwaitSteps(const std::string& run, std::int64_t count) {
    const auto patience = std::chrono::steady_clock::now() + ReplicaHarness::kPatience;
    while (true) {
      const auto steps = Steps(run);
      if (!steps.empty() && steps.rbegin()->first >= count) return;
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "no step " << count;
      poll(nullptr, 0, kLook_ms);
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
  const auto harness = Harness(run, {"samples=1003", "batch_size=30", "epochs=0", "compute_ms=2"});
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
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(c), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 1003));
}

TEST_F(ElasticTraining, FixedModeGivesTheSameModelWhateverTheReplicas) {
  std::vector<std::string> parameters{"samples=500",   "batch_size=25", "epochs=0",
                                      "max_atomic=10", "compute_ms=1",  "lr=0.003"};
  const std::string resized = NewRun("resized");
  const auto harness = Harness(resized, parameters);
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a}, false, {a});
  AwaitSteps(resized, 10);
  harness->Regroup({a, b});
  harness->AwaitRegrouped();
  AwaitSteps(resized, 30);
  harness->Regroup({b});
  harness->AwaitRegrouped();
  Stop(resized);
  harness->AwaitMessage("the end", IsFinished);
  harness->AwaitExit(b);
  const std::int64_t epochs = ExpectEachSampleOnceAnEpoch(resized, 500);

  const std::string still = NewRun("still");
  parameters[2] = "epochs=" + std::to_string(epochs);
  const auto undisturbed = Harness(still, parameters);
  const auto only = undisturbed->Start();
  undisturbed->AwaitReady(only);
  undisturbed->Regroup({only});
  undisturbed->AwaitMessage("the end", IsFinished);
  undisturbed->AwaitExit(only);

  ExpectClose(FinalParameters(still), FinalParameters(resized));
  const auto reports = Reports(*undisturbed);
  const auto resized_reports = Reports(*harness);
  ASSERT_EQ(reports.size(), static_cast<std::size_t>(epochs));
  ASSERT_EQ(resized_reports.size(), reports.size());
  for (const auto& [step, value] : reports) {
    EXPECT_NEAR(value, resized_reports.at(step), 1e-3 * value);
  }
}

// The service hears of a loss from the agent, and tells the survivors.
class LostReplica : public ElasticTraining, public ::testing::WithParamInterface<int> {};

TEST_P(LostReplica, SurvivorsGoOnFromMemory) {
  const int signal = GetParam();
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=900", "batch_size=30", "epochs=0", "compute_ms=2"});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 4; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  harness->AwaitRegrouped();
  AwaitSteps(run, 8);
  harness->Signal(all[0], signal);  // the reporting replica
  harness->Regroup({all[1], all[2], all[3]}, true, {all[1], all[2], all[3]});
  harness->AwaitRegrouped();
  AwaitSteps(run, 25);
  harness->Signal(all[2], signal);
  harness->Regroup({all[3], all[1]}, true, {all[3], all[1]});
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[1]), 0);
  EXPECT_EQ(harness->AwaitExit(all[3]), 0);
  harness->Kill(all[0]);
  harness->Kill(all[2]);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 900));
}

INSTANTIATE_TEST_SUITE_P(KilledOrStopped, LostReplica, ::testing::Values(SIGKILL, SIGSTOP));

TEST_F(ElasticTraining, ASecondLossWhileFormingIsSurvived) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=600", "batch_size=30", "epochs=0", "compute_ms=2"});
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
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[2]), 0);
  ExpectEachSampleOnceAnEpoch(run, 600);
}

TEST_F(ElasticTraining, TwoRegroupsInARowEndInTheNewest) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=1200", "batch_size=30", "epochs=0", "compute_ms=2"});
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
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[1]), 0);
  ExpectEachSampleOnceAnEpoch(run, 1200);
}

// Random sequences of growing, shrinking, killing and changing one's mind, often before the regroup
// before is done.
class AnyMixOfEvents : public ElasticTraining, public ::testing::WithParamInterface<int> {};

TEST_P(AnyMixOfEvents, LosesNeitherSampleNorReport) {
  Random random(static_cast<std::uint64_t>(GetParam()));
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=331", "batch_size=24", "max_atomic=7", "epochs=0",
                                     "compute_ms=1", "batch_norm=true", "dropout=0.2"});
  std::vector<std::int64_t> members{harness->Start()};
  harness->AwaitReady(members[0]);
  harness->Regroup(members);
  for (int event = 0; event < 12; ++event) {
    // At least one member has to have been in a group that trained.
    const bool settled = random.Below(3) > 0;
    if (settled) harness->AwaitRegrouped();
    const std::size_t size = members.size();
    if (settled && size > 1 && random.Below(3) == 0) {
      const auto lost = static_cast<std::ptrdiff_t>(random.Below(size));
      harness->Kill(members[static_cast<std::size_t>(lost)]);
      members.erase(members.begin() + lost);
      harness->Regroup(members, /*abandon=*/true);
    } else if (size < 4 && random.Below(2) == 0) {
      const std::int64_t joiner = harness->Start();
      harness->AwaitReady(joiner);
      const auto at = static_cast<std::ptrdiff_t>(random.Below(size + 1));
      members.insert(members.begin() + at, joiner);
      harness->Regroup(members, random.Below(4) == 0);
    } else if (settled && size > 1) {
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(random.Below(size)));
      harness->Regroup(members, random.Below(4) == 0);
    } else {
      harness->Regroup(members);
    }
  }
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  for (const std::int64_t id : members) EXPECT_EQ(harness->AwaitExit(id), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 331));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyMixOfEvents, ::testing::Range(1, 9));

TEST_F(ElasticTraining, PausesIntoACheckpointAndResumesOnAnotherNumberOfReplicas) {
  const std::vector<std::string> parameters{"samples=700", "batch_size=35", "epochs=0",
                                            "compute_ms=2", "adam=true"};
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
      const auto* saved = std::get_if<ReplicaCheckpoint>(&said.word);
      if (saved == nullptr) continue;
      checkpoint = saved->path;
      paused_at = saved->step;
    }
  }
  ASSERT_GE(paused_at, 27);
  ASSERT_TRUE(fs::exists(checkpoint));
  const auto harness = Harness(run, parameters, {{"ESPALIER_CHECKPOINT", checkpoint}});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  for (const auto id : all) EXPECT_EQ(harness->AwaitExit(id), 0);
  ExpectEachSampleOnceAnEpoch(run, 700);
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
                               {"samples=6000", "batch_size=16", "max_batch_size=256", "epochs=0",
                                "compute_ms=4", "lr=0.001"},
                               {{"ESPALIER_BATCH_MODE", "adaptive"}});
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitMessage("a grown batch", [](const Said& said) {
    const auto* progress = std::get_if<ReplicaProgress>(&said.word);
    return progress != nullptr && progress->global_batch_size > 16;
  });
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  ExpectEachSampleOnceAnEpoch(run, 6000);
}

TEST_F(ElasticTraining, JoinersGetBuffersMomentsAndEarlierEvaluations) {
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=640", "batch_size=32", "epochs=0", "compute_ms=2", "adam=true",
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
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 640));
}

// The program says what is wrong with its batch before it asks for a place in a group.
TEST_F(ElasticTraining, BatchThatCannotBeFormedEndsTheProgramWithItsExitCode) {
  const std::string run = NewRun("run");
  for (const char* wrong : {"batch_size=101", "max_batch_size=31", "min_atomic=33"}) {
    const auto harness = Harness(run, {"samples=100", "max_batch_size=64", wrong});
    EXPECT_EQ(harness->AwaitExit(harness->Start()), 2) << wrong;
    EXPECT_TRUE(harness->EverythingSaid().empty()) << wrong;
  }
}

TEST_F(ElasticTraining, ReplicaEndsWhenItsAgentIsGone) {
  const std::string run = NewRun("run");
  pid_t orphan_exit = 0;
  {
    const auto harness = Harness(run, {"epochs=100000", "compute_ms=1"});
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
