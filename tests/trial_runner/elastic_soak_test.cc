// A thousand resizes, losses and pauses of one trial: no sample is lost or seen twice, the curve is
// that of an undisturbed run, and whoever lived through hundreds of groups has not grown.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/trial_runner/elastic_training.h"
#include "tuner/base/random.h"

namespace espalier {
namespace {

constexpr int kEvents = 1000;
constexpr int kWarmUp = 100;  // events after which memory and descriptors are first looked at
constexpr int kMeasured = 600;
constexpr int kPauseEvery = 100;  // after kMeasured, which wants one process to live through it all
constexpr std::size_t kMostMembers = 4;
// Events a spare is left to start up in; then it is waited for.
constexpr int kStartEvents = 15;
constexpr std::int64_t kSamples = 4001;
// What fragmentation may add over 500 groups. 64 KiB lost a group would be more.
constexpr std::int64_t kMostGrowth_bytes = 32 << 20;
// Gloo's own, opened once, and those of a group that is just being given up.
constexpr std::ptrdiff_t kMostNewDescriptors = 16;

std::int64_t ResidentBytes(pid_t process) {
  std::ifstream statm("/proc/" + std::to_string(process) + "/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::ptrdiff_t OpenDescriptors(pid_t process) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(process) + "/fd");
  return std::distance(begin(files), end(files));
}

class ElasticSoak : public ElasticTraining {
 protected:
  struct Spare {
    std::int64_t id = 0;
    int started_at = 0;
  };

  static std::vector<std::string> Parameters(bool disturbed, std::int64_t epochs) {
    return {"samples=" + std::to_string(kSamples),
            "batch_size=40",
            "max_atomic=16",
            "max_atomic=16",
            "lr=0.003",
            "epochs=" + std::to_string(epochs),
            "compute_ms=" + std::to_string(disturbed ? 1 : 0)};
  }

  void Begin() {
    run_ = NewRun("disturbed");
    harness_ = Harness(run_, Parameters(true, 0));
    members_ = {harness_->Start()};
    harness_->AwaitReady(members_[0]);
    harness_->Regroup(members_);
  }

  // The first member is never lost, so that something has lived through it all.
  std::size_t AnyOther() { return 1 + random_.Below(members_.size() - 1); }

  // Tells those who are or were members, and not the spares.
  void Regroup(bool abandon, std::vector<std::int64_t> leavers = {}) {
    std::vector<std::int64_t> order = members_;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    leavers.insert(leavers.end(), order.begin(), order.end());
    harness_->Regroup(order, abandon, leavers);
  }

  void LoseOne() {
    const std::size_t at = AnyOther();
    const std::int64_t lost = members_[at];
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
    const bool hangs = random_.Below(2) == 0;
    harness_->Signal(lost, hangs ? SIGSTOP : SIGKILL);
    Regroup(/*abandon=*/true);
    if (hangs) harness_->AwaitRegrouped();
    harness_->Kill(lost);
  }

  void LetOneLeave() {
    const std::size_t at = AnyOther();
    const std::int64_t leaver = members_[at];
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
    Regroup(/*abandon=*/false, {leaver});
  }

  void TakeIn(Spare spare) {
    harness_->AwaitReady(spare.id);
    members_.push_back(spare.id);
    Regroup(random_.Below(4) == 0);
  }

  // All stop at a checkpoint, and another number of new processes goes on from there.
  void PauseAndResume() {
    harness_->AwaitRegrouped();
    harness_->Regroup({}, false, members_);
    for (const std::int64_t id : members_) EXPECT_EQ(harness_->AwaitExit(id), 0);
    std::string checkpoint;
    for (const Said& said : harness_->EverythingSaid()) {
      if (const auto* saved = std::get_if<ReplicaCheckpoint>(&said.word)) checkpoint = saved->path;
    }
    members_.clear();
    for (std::uint64_t i = 0; i <= random_.Below(2); ++i) {
      members_.push_back(harness_->Start({{"ESPALIER_CHECKPOINT", checkpoint}}));
    }
    for (const std::int64_t id : members_) harness_->AwaitReady(id);
    Regroup(false);
  }

  void AnyEvent(int event) {
    const bool settled = random_.Below(3) > 0;
    if (settled) harness_->AwaitRegrouped();
    if (spares_.empty() && members_.size() < kMostMembers) {
      spares_.push_back({harness_->Start(), event});
    }
    const std::uint64_t kind = random_.Below(16);
    const bool spare_ready = !spares_.empty() && event - spares_[0].started_at >= kStartEvents;
    if (spare_ready && members_.size() < kMostMembers) {
      TakeIn(spares_[0]);
      spares_.erase(spares_.begin());
    } else if (settled && members_.size() > 1 && kind == 0) {
      LoseOne();
    } else if (settled && members_.size() > 1 && kind == 1) {
      LetOneLeave();
    } else {
      Regroup(random_.Below(4) == 0);
    }
  }

  // A group of the first member alone, so that what is measured does not depend on the others.
  void ShrinkToTheFirst() {
    harness_->AwaitRegrouped();
    const std::vector<std::int64_t> leavers(members_.begin() + 1, members_.end());
    members_.resize(1);
    Regroup(false, leavers);
    harness_->AwaitRegrouped();
    for (const std::int64_t id : leavers) EXPECT_EQ(harness_->AwaitExit(id), 0);
  }

  Random random_{20};
  std::string run_;
  std::unique_ptr<ReplicaHarness> harness_;
  std::vector<std::int64_t> members_;
  std::vector<Spare> spares_;
};

TEST_F(ElasticSoak, AThousandEventsLoseNothingAndLeaveNothing) {
  Begin();
  pid_t first = 0;
  std::int64_t resident = 0;
  std::ptrdiff_t descriptors = 0;
  for (int event = 0; event < kEvents; ++event) {
    if (event == kWarmUp) {
      ShrinkToTheFirst();
      first = harness_->Process(members_[0]);
      resident = ResidentBytes(first);
      descriptors = OpenDescriptors(first);
      ASSERT_GT(resident, 0);
    } else if (event == kMeasured) {
      ShrinkToTheFirst();
      EXPECT_LT(ResidentBytes(first), resident + kMostGrowth_bytes) << "from " << resident;
      EXPECT_LE(OpenDescriptors(first), descriptors + kMostNewDescriptors);
      RecordProperty("grown_bytes", std::to_string(ResidentBytes(first) - resident));
      RecordProperty("new_descriptors", std::to_string(OpenDescriptors(first) - descriptors));
    } else if (event > kMeasured && event % kPauseEvery == 0) {
      PauseAndResume();
    } else {
      AnyEvent(event);
    }
  }
  harness_->AwaitRegrouped();
  Stop(run_);
  harness_->AwaitMessage("the end", IsFinished);
  for (const std::int64_t id : members_) EXPECT_EQ(harness_->AwaitExit(id), 0);
  const std::int64_t epochs = ExpectEachSampleOnceAnEpoch(run_, kSamples);
  EXPECT_EQ(ReportedSteps(*harness_), epochs);
  EXPECT_GE(epochs, 2);

  const std::string still = NewRun("undisturbed");
  const auto undisturbed = Harness(still, Parameters(false, epochs));
  const auto only = undisturbed->Start();
  undisturbed->AwaitReady(only);
  undisturbed->Regroup({only});
  undisturbed->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(undisturbed->AwaitExit(only), 0);
  const auto expected = Reports(*undisturbed);
  const auto seen = Reports(*harness_);
  ASSERT_EQ(expected.size(), seen.size());
  for (const auto& [epoch, loss] : expected) {
    EXPECT_NEAR(seen.at(epoch), loss, 1e-5 * loss) << "epoch " << epoch;
  }
}

}  // namespace
}  // namespace espalier
