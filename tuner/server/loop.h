#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "tuner/api/agent_convert.h"
#include "tuner/api/tuner.h"
#include "tuner/server/metrics.h"
#include "tuner/storage/storage.h"

namespace espalier {

inline constexpr std::size_t kMaxQueue = 4096;  // posting waits while so many are queued
inline constexpr std::size_t kMaxBatch = 1024;  // events of one commit
inline constexpr double kMaxWait_s = 1.0;  // between looks at the clock while a deadline is set
inline constexpr double kMinTickInterval_s = 0.01;
// The process ends with it when a commit fails: see Loop.
inline constexpr int kCommitFailedExitCode = 74;

// Where commands go once they may: called on the owner thread, must not wait.
using SendCommands =
    std::function<void(const std::vector<Command>& commands, const TunerState& state)>;

struct LoopOptions {
  CoreOptions core;
  std::function<Time()> clock = Now;
  // Does what the core asks of an engine, after the commit: on the owner thread, must not wait.
  std::function<void(const NodeRequest&)> ask_engine;
  // Told what has been committed, before those who wait for it are answered: on the owner thread,
  // must not wait.
  std::function<void(const std::vector<Change>&, const TunerState&)> committed;
  // See Tuner::ReadOutput.
  std::function<absl::StatusOr<std::string>(NodeId, const std::string& study,
                                            std::int64_t trial_number, std::int64_t max_bytes)>
      read_output;
  // What follows a failed commit; by default the process ends with kCommitFailedExitCode.
  std::function<void()> terminate;
};

// The owner thread of core and storage. It drains a bounded queue, steps the core for each event,
// commits all changes of the batch in one transaction, and only then answers, shows the new state
// to readers, and sends commands. Between batches it lets the storage clean up. All methods may be
// called from any thread but the owner.
//
// If a commit fails, the core is ahead of what is durable and of no more use: those who wait get
// UNAVAILABLE, and the process ends. A restart on the same database goes on from the last commit.
class Loop final : public Tuner {
 public:
  // Called on the owner thread once the event's changes are durable (or with UNAVAILABLE).
  using Done = std::function<void(const Reply&)>;

  Loop(std::unique_ptr<Storage> storage, TunerState state, LoopOptions options, Metrics& metrics,
       SendCommands send);
  ~Loop() override;  // stops

  Reply Post(Event event) override;
  absl::Status Read(const std::function<void(const View&)>& look) override;

  void PostThen(Event event, std::function<void(const Reply&)> done) override;
  void ReadThen(std::function<void(const View*)> look) override;

  absl::StatusOr<std::string> ReadOutput(NodeId node, const std::string& study,
                                         std::int64_t trial_number,
                                         std::int64_t max_bytes) override;

  // Queues the event and returns; waits only while the queue is full.
  void PostAsync(FromAgent from_agent, Done done);

  // Who waits for slots is told that the service ends, and nobody waits for them from now on: the
  // doors can be closed.
  void EndWaits();

  // Takes no more, finishes what is queued, ends the thread and closes the storage.
  void Stop();

  std::size_t queued() const;

 private:
  struct EventItem {
    FromAgent from_agent;
    Done done;
    Reply reply;
    std::map<TrialId, Reply> late{};  // of the same step
  };
  struct ReadItem {
    std::function<void(const View*)> look;  // null: nothing to see any more
  };
  using Item = std::variant<EventItem, ReadItem>;

  bool Enqueue(Item& item);
  void Run();
  std::vector<Item> NextBatch(bool& stopping);
  void Process(std::vector<Item> batch);
  // What the steps of one batch lead to.
  struct Outcome {
    std::vector<Change> changes;
    std::vector<Command> commands;
    std::vector<NodeRequest> node_requests;
  };
  void Step(EventItem& item, Outcome& outcome);
  bool Commit(const std::vector<Change>& changes, std::size_t events);
  void Answer(std::vector<Item>& batch);
  void Answer(EventItem& item);
  void AnswerAllWaits(const Reply& reply);
  void NotePids(const FromAgent& from_agent);
  void TickIfDue();
  void CleanUp();
  void FailAll(std::vector<Item>& batch);

  const LoopOptions options_;
  Metrics& metrics_;
  const SendCommands send_;

  // Owned by the thread.
  std::unique_ptr<Storage> storage_;
  Core core_;
  std::map<ReplicaId, int> pids_;
  std::map<std::string, std::vector<NodeGpu>> gpus_;  // by node name
  std::map<std::string, std::string> folders_;        // likewise
  Time last_tick_;
  bool cleaning_ = true;  // a service before this one may have left something behind
  std::map<TrialId, std::vector<Done>> waits_;  // whose answers come later
  bool waits_ended_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<Item> queue_;
  bool stopping_ = false;
  bool broken_ = false;

  std::mutex stop_mutex_;  // one Stop at a time
  std::thread thread_;     // last: starts when all else is there
};

}  // namespace espalier
