// Real processes of a real program, resized, killed and stopped while they train.

#include "tests/trial_runner/torch/elastic_training.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/random.h"
#include "gmock/gmock.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

std::int64_t ResidentBytes(pid_t process) {
  std::ifstream statm("/proc/" + std::to_string(process) + "/statm");
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
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

TEST_F(ElasticTraining, ASpareComesBackEpochsLater) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=300", "batch_size=30", "epochs=0", "compute_ms=1"});
  const auto a = harness->Start();
  const auto b = harness->Start({{"ESPALIER_SPARE", "1"}});
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({b, a});
  harness->AwaitRegrouped();
  AwaitSteps(run, 5);
  harness->Regroup({a});
  harness->AwaitRegrouped();
  harness->AwaitParked(b);
  const auto c = ComeBackEpochsLater(*harness, a, b);
  harness->Regroup({c});
  harness->AwaitRegrouped();
  EXPECT_EQ(harness->AwaitExit(a), 0);
  // It parks a second time, and comes back to nobody.
  const auto d = harness->Start();
  harness->AwaitReady(d);
  harness->Regroup({d, c});
  harness->AwaitRegrouped({c});
  harness->Regroup({d});
  harness->AwaitRegrouped();
  harness->AwaitParked(c);
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(d), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 300));
  for (const Said& said : harness->EverythingSaid()) {
    const auto* regrouped = std::get_if<ReplicaRegrouped>(&said.message);
    if (regrouped == nullptr || said.replica != c) continue;
    EXPECT_EQ(regrouped->pause_s, 0) << "its time as a spare is no pause of the trial";
    break;
  }
}

// Of the gradients' memory it has no use; the model, 80 MB here, it may be asked to train again.
TEST_F(ElasticTraining, ASpareHoldsNoGradients) {
  constexpr std::int64_t kGradientBytes = 80'000'000;
  const std::string run = NewRun("run");
  const auto harness = Harness(
      run, {"samples=8", "batch_size=4", "epochs=0", "lr=0", "momentum=0", "width=2000000"});
  const auto a = harness->Start();
  const auto b = harness->Start({{"ESPALIER_SPARE", "1"}});
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  const std::int64_t before = ResidentBytes(harness->Process(b));
  harness->Regroup({a, b});
  harness->AwaitRegrouped();
  AwaitSteps(run, 4);
  EXPECT_GT(ResidentBytes(harness->Process(b)), before + kGradientBytes) << "while it trains";
  harness->Regroup({a});
  harness->AwaitRegrouped();
  harness->AwaitParked(b);
  // The connections of its group are closed on a thread, which holds what it sent last.
  const auto patience = std::chrono::steady_clock::now() + ReplicaHarness::kPatience;
  while (ResidentBytes(harness->Process(b)) > before + kGradientBytes / 2) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience)
        << ResidentBytes(harness->Process(b)) - before << " bytes more than before it trained";
    poll(nullptr, 0, kLook_ms);
  }
}

// Its second evaluation of that epoch, the one for the end, must not be answered with the first.
TEST_F(ElasticTraining, ASpareThatLeftBetweenTwoEvaluationsComesBackBetweenThem) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=300", "batch_size=30", "epochs=0", "compute_ms=1"});
  const auto a = harness->Start();
  const auto b = harness->Start({{"ESPALIER_SPARE", "1"}});
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitRegrouped();
  const std::filesystem::path hold = run + "/hold";
  std::filesystem::create_directory(hold);
  AwaitFiles(hold, 2);
  harness->Regroup({a});
  std::filesystem::remove_all(hold);
  harness->AwaitRegrouped();
  harness->AwaitParked(b);
  const auto c = ComeBackEpochsLater(*harness, a, b);
  const auto together = ReportedSteps(*harness);
  harness->AwaitMessage("two epochs with it", [&](const Said& said) {
    const auto* report = std::get_if<ReplicaReport>(&said.message);
    EXPECT_FALSE(IsFinished(said)) << "nobody has said stop";
    return (report != nullptr && report->step == together + 3) || IsFinished(said);
  });
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(c), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 300));
}

TEST_F(ElasticTraining, APausedTrialGoesOnInASpareThatHadLeftEarlier) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=300", "batch_size=30", "epochs=0", "compute_ms=1"},
                               {{"ESPALIER_SPARE", "1"}});
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitRegrouped();
  harness->Regroup({a});
  harness->AwaitRegrouped();
  harness->AwaitParked(b);
  AwaitSteps(run, 25);
  harness->Regroup({});
  harness->AwaitParked(a);
  std::string checkpoint;
  for (const Said& said : harness->EverythingSaid()) {
    if (const auto* saved = std::get_if<ReplicaCheckpoint>(&said.message)) checkpoint = saved->path;
  }
  // One is behind the checkpoint, the other holds just that.
  const auto c = harness->Adopt(b, checkpoint);
  harness->AwaitReady(c);
  harness->Regroup({c});
  harness->AwaitRegrouped();
  const auto d = harness->Adopt(a, checkpoint);
  harness->AwaitReady(d);
  harness->Regroup({c, d});
  harness->AwaitRegrouped({c});
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(c), 0);
  EXPECT_EQ(harness->AwaitExit(d), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 300));
}

// The ways in which a program gets its data: as a probe's parameters.
using WayOfDealing = std::vector<std::string>;

class FixedMode : public ElasticTraining, public ::testing::WithParamInterface<WayOfDealing> {};

TEST_P(FixedMode, GivesTheSameModelWhateverTheReplicas) {
  std::vector<std::string> parameters{"samples=500",   "batch_size=25", "epochs=0",
                                      "max_atomic=10", "compute_ms=1",  "lr=0.003"};
  parameters.insert(parameters.end(), GetParam().begin(), GetParam().end());
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
  parameters.emplace_back("workers=0");  // what threads prepared is the same as well
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

INSTANTIATE_TEST_SUITE_P(
    WaysOfDealing, FixedMode,
    ::testing::Values(WayOfDealing{"data=indices"},
                      WayOfDealing{"data=map", "noise=0.5", "workers=2", "batches=start"},
                      WayOfDealing{"data=stream", "noise=0.5", "workers=1", "says=500"}));

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
class AnyMixOfEvents : public ElasticTraining,
                       public ::testing::WithParamInterface<std::tuple<int, WayOfDealing>> {};

TEST_P(AnyMixOfEvents, LosesNeitherSampleNorReport) {
  const auto& [seed, way] = GetParam();
  Random random(static_cast<std::uint64_t>(seed));
  const std::string run = NewRun("run");
  std::vector<std::string> parameters{"samples=331",  "batch_size=24",   "max_atomic=7", "epochs=0",
                                      "compute_ms=1", "batch_norm=true", "dropout=0.2"};
  parameters.insert(parameters.end(), way.begin(), way.end());
  const auto harness = Harness(run, parameters);
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

INSTANTIATE_TEST_SUITE_P(Seeds, AnyMixOfEvents,
                         ::testing::Combine(::testing::Range(1, 9),
                                            ::testing::Values(WayOfDealing{"data=indices"})));
INSTANTIATE_TEST_SUITE_P(
    ReadAhead, AnyMixOfEvents,
    ::testing::Combine(::testing::Range(11, 13),
                       ::testing::Values(WayOfDealing{"data=map", "workers=2", "prefetch=3"},
                                         WayOfDealing{"data=torch", "workers=1"},
                                         WayOfDealing{"data=stream", "workers=2"})));

INSTANTIATE_TEST_SUITE_P(
    OtherBatches, AnyMixOfEvents,
    ::testing::Combine(::testing::Range(21, 23),
                       ::testing::Values(WayOfDealing{"data=indices", "batches=start"},
                                         WayOfDealing{"data=map", "workers=1", "batches=end"})));

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
      const auto* saved = std::get_if<ReplicaCheckpoint>(&said.message);
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
    const auto* progress = std::get_if<ReplicaProgress>(&said.message);
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

// They come through what stands before an epoch's loop when the others are within it.
TEST_F(ElasticTraining, AJoinerIsToldWhatWasEvaluatedBeforeTheEpochsLoop) {
  const std::string run = NewRun("run");
  const auto harness = Harness(
      run, {"samples=6400", "batch_size=32", "epochs=0", "compute_ms=2", "evaluate_first=true"});
  auto in_charge = harness->Start();
  harness->AwaitReady(in_charge);
  harness->Regroup({in_charge}, false, {in_charge});
  AwaitSteps(run, 230);  // the second epoch: what stands before it was found after the first, too
  for (int i = 0; i < 3; ++i) {
    const auto joiner = harness->Start();
    harness->AwaitReady(joiner);
    harness->Regroup({in_charge, joiner});
    harness->AwaitRegrouped();
    harness->Regroup({joiner});
    harness->AwaitRegrouped();
    in_charge = joiner;
  }
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(in_charge), 0);
  std::map<std::int64_t, std::pair<double, double>> evaluated;  // by epoch: before and after it
  for (const Said& said : harness->EverythingSaid()) {
    if (const auto* report = std::get_if<ReplicaReport>(&said.message)) {
      evaluated[report->step] = {report->extra.at("before"), report->value};
    }
  }
  ASSERT_GE(evaluated.size(), 2);
  for (auto epoch = std::next(evaluated.begin()); epoch != evaluated.end(); ++epoch) {
    const double after_the_last = std::prev(epoch)->second.second;
    EXPECT_NEAR(epoch->second.first, after_the_last, 1e-6 * after_the_last) << epoch->first;
  }
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

// A network that is cut, or a deadlock: no process ends, so nobody but the members can know.
TEST_F(ElasticTraining, MembersThatWaitInVainSayThatTheyAreStuckAndGoOnWhenTold) {
  const std::string run = NewRun("run");
  // For longer than a busy machine keeps one of them from the other before it is stopped.
  const auto harness = Harness(run, {"samples=600", "batch_size=30", "epochs=0", "compute_ms=1"},
                               {{"ESPALIER_COLLECTIVE_TIMEOUT", "5"}});
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  const std::int64_t generation = harness->Regroup({a, b});
  harness->AwaitRegrouped();
  AwaitSteps(run, 5);
  harness->Signal(b, SIGSTOP);
  harness->AwaitMessage("somebody stuck", [&](const Said& said) {
    const auto* stuck = std::get_if<ReplicaStuck>(&said.message);
    return stuck != nullptr && said.replica == a && stuck->generation == generation;
  });
  harness->Regroup({a}, /*abandon=*/true, {a});
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  ExpectEachSampleOnceAnEpoch(run, 600);
}

TEST_F(ElasticTraining, StreamThatIsNotAsLongAsItSaysEndsTheProgramWithItsExitCode) {
  for (const char* says : {"says=99", "says=101"}) {
    for (const char* workers : {"workers=0", "workers=2"}) {
      const std::string run = NewRun(std::string(says) + workers);
      const auto harness = Harness(run, {"samples=100", "data=stream", says, workers});
      const auto a = harness->Start();
      harness->AwaitReady(a);
      harness->Regroup({a});
      EXPECT_EQ(harness->AwaitExit(a), 2) << says << " " << workers;
    }
  }
}

TEST_F(ElasticTraining, ReplicasThatBeginWithOtherWeightsAreNamedBeforeTheFirstStep) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"own_seed=true"});
  const auto a = harness->Start();
  const auto b = harness->Start();
  harness->AwaitReady(a);
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitMessage("its reason", [&](const Said& said) {
    const auto* finished = std::get_if<ReplicaFinished>(&said.message);
    return finished != nullptr && said.replica == a &&
           finished->failure.starts_with(
               "replica 1 begins with other values than the others: parameter \"0.weight\", ");
  });
  EXPECT_EQ(harness->AwaitExit(a), 1);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  EXPECT_TRUE(Steps(run).empty());
}

// What a joining replica has is replaced by design.
TEST_F(ElasticTraining, OneThatJoinsMayBringOtherWeights) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"own_seed=true", "epochs=0", "compute_ms=1"});
  const auto a = harness->Start();
  harness->AwaitReady(a);
  harness->Regroup({a});
  harness->AwaitRegrouped();
  AwaitSteps(run, 3);
  const auto b = harness->Start();
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(b), 0);
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
