#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "trial_runner/collectives/bell.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

// Where members stop as a process does that is killed or stopped: whoever holds them keeps what it
// has. A member is a thread. Of one test at a time.
class Stops {
 public:
  Stops();
  ~Stops();
  Stops(const Stops&) = delete;
  Stops& operator=(const Stops&) = delete;

  // The calling thread stops at that call from now on, counted from 1, and sets `stopped` then; 0:
  // at none.
  static void StopAt(int call, std::atomic<bool>* stopped);
  // Is called where a member may stop.
  static void AtCall();
  // Those that have stopped go on, and come to an end where they wait.
  void Release();

  // Wakes who waits, after the change.
  void Change(const std::function<void()>& change);
  // False if it has not come true within the patience.
  bool Await(const std::function<bool()>& condition);
};

// Where the members of one process meet: what the network is to others.
class MeetingPlace {
 public:
  using Bytes = std::vector<std::uint8_t>;
  // Generation, what they meet for, and which of these it is.
  using Key = std::tuple<std::int64_t, std::string, int>;

  void Tell(const Key& key, int rank, const Bytes& bytes);
  // What so many have told, by rank; empty: some have not come.
  std::map<int, Bytes> Told(const Key& key, int count);

 private:
  std::mutex mutex_;
  std::map<Key, std::map<int, Bytes>> told_;
};

// Collectives of host memory between threads of one process, without any third party. Their groups
// form at once.
class InProcessHost final : public Collectives {
 public:
  explicit InProcessHost(MeetingPlace& place) : place_(place) {}

  std::string Address() const override { return ""; }
  absl::Status Form(const GroupPlan& plan) override;
  void StartAllReduceSum(const CollectiveBuffer& buffer) override;
  void StartBroadcast(const CollectiveBuffer& buffer, int root) override;
  void StartSend(const CollectiveBuffer& buffer, int to) override;
  void StartReceive(const CollectiveBuffer& buffer, int from) override;
  absl::Status WaitAll() override;
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override;
  void Abandon(std::int64_t generation, double grace_s) override {
    bell_.Abandon(generation, grace_s);
  }
  void SetLeastGrace(double grace_s) override { bell_.SetLeastGrace(grace_s); }
  double Waiting_s() const override { return bell_.Waiting_s(); }
  absl::Status Wait(double limit_s, const std::function<bool()>& done);

 private:
  using Finish = std::function<bool()>;  // true once it is done

  // Everybody tells what he has, and makes something of what all have told.
  void Meet(const std::string& what, const CollectiveBuffer& buffer,
            std::function<void(const std::map<int, MeetingPlace::Bytes>&)> make);
  MeetingPlace::Key Next(const std::string& what) {
    return {plan_.generation, what, counts_[what]++};
  }

  MeetingPlace& place_;
  Bell bell_;
  GroupPlan plan_;
  std::map<std::string, int> counts_;
  std::vector<Finish> begun_;
  bool lost_ = false;
};

}  // namespace espalier
