// A thousand joins, leaves, losses, pauses and shuffles of one trial: no sample is lost or seen
// twice, the curve is that of an undisturbed run, and whoever lived through hundreds of groups has
// not grown. Which events come follows from the seed alone.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/random.h"
#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

constexpr int kEvents = 1000;
constexpr int kWarmUp = 100;  // events after which memory and descriptors are first looked at
constexpr int kMeasured = 600;
constexpr int kPauseEvery = 30;  // after kMeasured, which wants one process to live through it all
constexpr std::size_t kMostMembers = 4;
constexpr std::uint64_t kSeed = 20;  // unless --gtest_random_seed says another
// Events a spare is left to start up in; then it is waited for.
constexpr int kStartEvents = 15;
constexpr std::int64_t kSamples = 4001;
// What fragmentation may add over 500 groups. 64 KiB lost a group would be more.
constexpr std::int64_t kMostGrowth_bytes = 32 << 20;
// Gloo's own, opened once, and those of a group that is just being given up.
constexpr std::ptrdiff_t kMostNewDescriptors = 16;

// What has happened, by kind.
struct Counts {
  int lost = 0;        // killed or stopped as members
  int lost_first = 0;  // of those: rank 0
  int hung = 0;        // of those: stopped
  int leaves = 0;      // less those for a pause
  int joins = 0;       // less those after a pause
  int new_joins = 0;   // of those: processes that had just started
  int pauses = 0;
  int shuffles = 0;  // the same members by other ranks
};

std::ostream& operator<<(std::ostream& to, const Counts& counts) {
  return to << counts.lost << " members lost (" << counts.lost_first << " rank 0, " << counts.hung
            << " hung), " << counts.leaves << " leaves, " << counts.joins << " joins ("
            << counts.new_joins << " of new processes), " << counts.pauses << " pauses, "
            << counts.shuffles << " shuffles";
}

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

// Groups that were given up close their connections by and by: last of all those one of whose
// members was lost before it had connected, when Gloo no longer waits for it.
bool ComesDownTo(pid_t process, std::ptrdiff_t descriptors) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(400);
  while (OpenDescriptors(process) > descriptors) {
    if (std::chrono::steady_clock::now() > end) return false;
    poll(nullptr, 0, 20);
  }
  return true;
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

  static std::uint64_t Seed() {
    const auto given = static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed));
    return given == 0 ? kSeed : given;
  }

  void Begin() {
    run_ = NewRun("disturbed");
    harness_ = Harness(run_, Parameters(true, 0), {{"ESPALIER_SPARE", "1"}});
    members_ = {harness_->Start()};
    harness_->AwaitReady(members_[0]);
    harness_->Regroup(members_);
    rank0_ = members_[0];
  }

  // Tells those who are or were members, and not the spares.
  void Regroup(bool abandon, std::vector<std::int64_t> leavers = {}) {
    std::vector<std::int64_t> order = members_;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    rank0_ = order[0];
    leavers.insert(leavers.end(), order.begin(), order.end());
    harness_->Regroup(order, abandon, leavers);
  }

  // Until kMeasured it is not the first, so that something has lived through it all.
  std::vector<std::int64_t>::iterator AnyMember(int event) {
    const std::uint64_t spared = event <= kMeasured ? 1 : 0;
    return members_.begin() +
           static_cast<std::ptrdiff_t>(spared + random_.Below(members_.size() - spared));
  }

  void LoseOne(int event) {
    auto at = AnyMember(event);
    const auto first = std::find(members_.begin(), members_.end(), rank0_);
    const bool may_be_first = event > kMeasured || first != members_.begin();
    if (may_be_first && random_.Below(2) == 0) at = first;
    const std::int64_t lost = *at;
    counts_.lost_first += lost == rank0_ ? 1 : 0;
    ++counts_.lost;
    members_.erase(at);
    const bool hangs = random_.Below(2) == 0;
    counts_.hung += hangs ? 1 : 0;
    harness_->Signal(lost, hangs ? SIGSTOP : SIGKILL);
    Regroup(/*abandon=*/true);
    if (hangs) harness_->AwaitRegrouped();
    harness_->Kill(lost);
  }

  void LetOneLeave(int event) {
    const auto at = AnyMember(event);
    const std::int64_t leaver = *at;
    members_.erase(at);
    Regroup(/*abandon=*/false, {leaver});
    parked_.push_back(leaver);
    ++counts_.leaves;
  }

  // One that had left comes back, or a new one comes.
  bool TakeOneIn(int event) {
    const bool spare_ready = !spares_.empty() && event - spares_[0].started_at >= kStartEvents;
    if (spare_ready) {
      members_.push_back(spares_[0].id);
      spares_.erase(spares_.begin());
      ++counts_.new_joins;
    } else if (!parked_.empty()) {
      harness_->AwaitParked(parked_[0]);
      members_.push_back(harness_->Adopt(parked_[0], ""));
      parked_.erase(parked_.begin());
    } else {
      return false;
    }
    harness_->AwaitReady(members_.back());
    Regroup(random_.Below(4) == 0);
    ++counts_.joins;
    return true;
  }

  std::string NewestCheckpoint() {
    std::string checkpoint;
    for (const Said& said : harness_->EverythingSaid()) {
      if (const auto* saved = std::get_if<ReplicaCheckpoint>(&said.message))
        checkpoint = saved->path;
    }
    return checkpoint;
  }

  // All stop at a checkpoint, and another number goes on from there: of those who had parked, now
  // or earlier, or of new processes.
  void PauseAndResume() {
    harness_->AwaitRegrouped();
    harness_->Regroup({}, false, members_);
    parked_.insert(parked_.end(), members_.begin(), members_.end());
    for (const std::int64_t id : parked_) harness_->AwaitParked(id);
    members_.clear();
    const std::string checkpoint = NewestCheckpoint();
    if (random_.Below(3) == 0) {
      for (const std::int64_t id : parked_) harness_->Kill(id);
      parked_.clear();
    }
    for (std::uint64_t i = 0; i <= random_.Below(2); ++i) {
      if (parked_.empty()) {
        members_.push_back(harness_->Start({{"ESPALIER_CHECKPOINT", checkpoint}}));
      } else {
        const auto chosen =
            parked_.begin() + static_cast<std::ptrdiff_t>(random_.Below(parked_.size()));
        members_.push_back(harness_->Adopt(*chosen, checkpoint));
        parked_.erase(chosen);
      }
    }
    for (const std::int64_t id : members_) harness_->AwaitReady(id);
    Regroup(false);
    ++counts_.pauses;
  }

  void AnyEvent(int event) {
    const bool settled = random_.Below(3) > 0;
    if (settled) harness_->AwaitRegrouped();
    if (members_.size() + parked_.size() + spares_.size() < kMostMembers) {
      spares_.push_back({harness_->Start(), event});
    }
    const std::uint64_t kind = random_.Below(24);
    const bool may_shrink = settled && members_.size() > 1;
    if (may_shrink && kind == 0) return LoseOne(event);
    if (may_shrink && kind < 8) return LetOneLeave(event);
    if (kind < 14 && members_.size() < kMostMembers && TakeOneIn(event)) return;
    Regroup(random_.Below(4) == 0);
    ++counts_.shuffles;
  }

  // A group of the first member alone, so that what is measured does not depend on the others.
  void ShrinkToTheFirst() {
    harness_->AwaitRegrouped();
    const std::vector<std::int64_t> leavers(members_.begin() + 1, members_.end());
    members_.resize(1);
    Regroup(false, leavers);
    harness_->AwaitRegrouped();
    for (const std::int64_t id : leavers) harness_->AwaitParked(id);
    parked_.insert(parked_.end(), leavers.begin(), leavers.end());
    counts_.leaves += static_cast<int>(leavers.size());
  }

  Random random_{Seed()};
  std::string run_;
  std::unique_ptr<ReplicaHarness> harness_;
  std::vector<std::int64_t> members_;
  std::int64_t rank0_ = 0;
  std::vector<std::int64_t> parked_;  // who has left
  std::vector<Spare> spares_;         // new processes
  Counts counts_;
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
      EXPECT_TRUE(ComesDownTo(first, descriptors + kMostNewDescriptors))
          << OpenDescriptors(first) << " descriptors, " << descriptors << " before";
      RecordProperty("grown_bytes", std::to_string(ResidentBytes(first) - resident));
      RecordProperty("new_descriptors", std::to_string(OpenDescriptors(first) - descriptors));
    } else if (event > kMeasured && event % kPauseEvery == 0) {
      PauseAndResume();
    } else {
      AnyEvent(event);
    }
  }
  std::cout << "seed " << Seed() << ": " << counts_ << std::endl;
  EXPECT_GE(counts_.lost, 10);
  EXPECT_GE(counts_.lost_first, 3);
  EXPECT_GE(counts_.hung, 3);
  EXPECT_GE(counts_.leaves, 100);
  EXPECT_GE(counts_.joins, 100);
  EXPECT_GE(counts_.new_joins, 3);
  EXPECT_GE(counts_.pauses, 10);
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
  EXPECT_EQ(undisturbed->AwaitExit(only), 0);  // however many epochs a busy machine has made of it
  const auto expected = Reports(*undisturbed);
  const auto seen = Reports(*harness_);
  ASSERT_EQ(expected.size(), seen.size());
  for (const auto& [epoch, loss] : expected) {
    EXPECT_NEAR(seen.at(epoch), loss, 1e-5 * loss) << "epoch " << epoch;
  }
}

}  // namespace
}  // namespace espalier
