#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "tuner/api/agent_convert.h"
#include "tuner/api/tuner.h"
#include "tuner/core/samplers/draw.h"
#include "tuner/core/scheduling/planner.h"
#include "tuner/server/loop/aside_thread.h"
#include "tuner/server/loop/metrics.h"
#include "tuner/server/loop/two_lanes.h"
#include "tuner/storage/storage.h"

namespace espalier {

inline constexpr std::size_t kMaxBatch = 1024;  // events of one commit
// That they take, less the last one; half of it while others wait in the other lane.
inline constexpr double kMaxBatch_s = 0.01;
inline constexpr double kMaxPlanWait_s = 0.002;  // before a commit, while nothing else is queued
inline constexpr double kMaxWait_s = 1.0;  // between looks at the clock while a deadline is set
inline constexpr double kMinTickInterval_s = 0.01;
inline constexpr double kStorageLook_s = 5.0;  // between looks at whether the database is there
// The process ends with these when a commit or a step fails: see Loop.
inline constexpr int kCommitFailedExitCode = 74;
inline constexpr int kStepFailedExitCode = 70;

// Sends commands, once what they follow from is durable. Called on the owner thread; must not wait.
using SendCommands =
    std::function<void(const std::vector<Command>& commands, const TunerState& state)>;

struct LoopOptions {
  CoreOptions core;
  std::function<Time()> clock = Now;
  double max_batch_s = kMaxBatch_s;
  // Does what the core asks of an engine, after the commit: on the owner thread, must not wait.
  std::function<void(const NodeRequest&)> ask_engine;
  // See Engine::NodeJoined. Given where ask_engine is.
  std::function<void(const std::string& node)> tell_engine_joined;
  // What keeps it from doing so, for people: on the owner thread, must not wait.
  std::function<std::vector<std::string>()> engine_troubles;
  // Asks a sampler outside (Sampler::outside): on the owner thread, must not wait. Given where
  // CoreOptions::asks_outside is.
  std::function<void(std::shared_ptr<const DrawRequest>, OutsideAnswer)> ask_outside;
  // What is wrong with the disk of the database, likewise; called after each batch.
  std::function<std::vector<std::string>()> disk_troubles;
  // Where the service's page is by now: on the owner thread, must not wait.
  std::function<ServedPage()> page;
  bool users_add_machines = false;  // see View
  // Called with what has been committed, before the clients that wait for it are answered: on the
  // owner thread, must not wait.
  std::function<void(const std::vector<Change>&, const TunerState&)> committed;
  // See Tuner::ReadOutput.
  std::function<absl::StatusOr<std::string>(NodeId, const TrialName&, const OutputPart&)>
      read_output;
  // See Tuner::CheckSampler.
  std::function<absl::StatusOr<std::string>(const StudySpec&)> check_sampler;
  std::string certificate_hash{};  // see Tuner
  // Called when a commit or a step has failed, with the reason for people, before the process ends.
  std::function<void(const std::string& why)> failed;
  // Called last after that; by default the process ends with this code.
  std::function<void(int exit_code)> terminate;
};

// The owner thread of core and storage. It drains a bounded queue, steps the core for each event,
// commits all changes of the batch in one transaction, and only then answers, shows the new state
// to readers, and sends commands. Between batches it lets the storage clean up. All methods may be
// called from any thread but the owner.
//
// Clients' calls have a lane of their own in the queue, and batches of their own: a call waits for
// the batch that is under way, and not for all that agents have said before it. Calls are handled
// in the order in which they came, and so is what agents say. Nobody is told of what is not
// durable, and all that is durable is seen: what a client was told of, by whomever, it finds.
//
// Overload slows callers down. Post and Read wait for room in the queue. PostThen and ReadThen must
// not wait: they are bounded because a client waits for its answer, and beyond kMaxOpenCalls they
// are refused. Agents bound themselves (AgentSession), so that no client's load costs them a lease.
//
// If a commit fails, the core is ahead of what is durable and of no more use: callers that wait get
// UNAVAILABLE, and the process ends. A restart on the same database goes on from the last commit.
// The same happens when the database is not there any more, which an idle loop looks for, too.
// After an exception in a step, or in what has to follow a commit, the process ends in the same
// way, and the log names the event. One in a look or in an answer ends that call alone.
//
// Plans are made by another thread, which is handed what the core asks for and answers with an
// event, and so are samplers' draws and terminators' answers that take long, by a third; samplers
// outside are asked by threads of others. Plans for small pools are there at once, and are carried
// out with the same commit.
class Loop final : public Tuner {
 public:
  // Called on the owner thread once the event's changes are durable (or with UNAVAILABLE).
  using Done = std::function<void(const Reply&)>;

  Loop(std::unique_ptr<Storage> storage, TunerState state, LoopOptions options, Metrics& metrics,
       SendCommands send);
  ~Loop() override;  // stops

  Reply Post(Event event) override;
  Reply PostAndRead(Event event,
                    const std::function<void(const Reply&, const View&)>& look) override;
  absl::Status Read(const std::function<void(const View&)>& look) override;

  void PostThen(Event event, std::function<void(const Reply&)> done) override;
  void ReadThen(std::function<void(const View*)> look) override;

  std::string certificate_hash() const override { return options_.certificate_hash; }
  absl::StatusOr<std::string> ReadOutput(NodeId node, const TrialName& trial,
                                         const OutputPart& part) override;
  absl::StatusOr<std::string> CheckSampler(const StudySpec& spec) override {
    return options_.check_sampler ? options_.check_sampler(spec) : "";
  }

  // Queues the event, in the lane of agents, and returns. Never waits: the caller bounds what it
  // has under way. False, and `done` is not called, when the loop takes no more.
  bool PostAsync(FromAgent from_agent, Done done);

  // Tells all clients that wait for slots that the service ends. From now on none waits for them,
  // so that the endpoints can be closed.
  void EndWaits();

  // Takes no more, finishes what is queued, ends the thread and closes the storage.
  void Stop();

  std::size_t queued() const;

 private:
  // `view` is null where the reply is an error.
  using Answered = std::function<void(const Reply&, const View* view)>;

  struct EventItem {
    FromAgent from_agent;
    Answered done;
    Reply reply;
  };
  struct ReadItem {
    std::function<void(const View*)> look;  // null: nothing to see any more
  };
  using Item = std::variant<EventItem, ReadItem>;
  using Queue = TwoLanes<Item>;

  // In clients' lane.
  absl::Status Enqueue(Item& item, Queue::IfFull if_full);
  void Run();
  double MostWait_s();
  // What the events of one batch lead to.
  struct Outcome {
    StepResult all;           // without replies, and without the plan that was asked for
    bool failed = false;      // in a step: nothing of it is to be committed
    bool plan_asked = false;  // by the last Settle
    bool unsettled = false;   // events have been handled since
  };
  void Handle(EventItem& item, Outcome& outcome);
  void Settle(Outcome& outcome);
  // False: `step` threw, and its name is in the log.
  template <typename Name, typename Step>
  static bool Took(const Name& name, Step step);
  // Calls `done`; if that throws, once more, with an error of its own.
  static void Tell(const Answered& done, const Reply& reply, const View* view);
  // Those that wait in the lane, as many as fit into a batch, after `tick` if there is one.
  void Process(QueueLane lane, std::optional<EventItem> tick = std::nullopt);
  // Takes the first of them to `batch`, and steps the core for each.
  void StepWaiting(QueueLane lane, std::vector<Item>& batch, Outcome& outcome);
  void ProcessTick();
  void Finish(std::vector<Item> batch, const Outcome& outcome);
  absl::Status Commit(const std::vector<Change>& changes, std::size_t events);
  void Answer(std::vector<Item>& batch, const std::map<LaterReply, Reply>& late);
  // Nobody waits for the last things that a commit leads to. False: one of them threw.
  bool SendAndAsk(const StepResult& all);
  std::vector<std::string> TroublesOf(
      const std::function<std::vector<std::string>()>& troubles) const;
  void Answer(EventItem& item, const View& view);
  void AnswerAllWaits(const Reply& reply);
  void Note(const FromAgent& from_agent);
  void Note(const NodeHost& at);
  void ForgetPidsOfLostNodes();
  void TickIfDue();
  void LookAtStorageIfDue();
  void CleanUp();
  // The process is about to end: why, as clients that wait and as the user are told.
  struct Failure {
    std::string for_clients;
    std::string for_user;
    int exit_code = 0;
  };
  void FailAll(std::vector<Item>& batch, const Failure& failure);
  void Plan(const std::shared_ptr<const PlanRequest>& request);
  void Draw(const std::shared_ptr<const DrawRequest>& request);
  void AskOutside(std::shared_ptr<const DrawRequest> request);
  void Answer(const std::shared_ptr<const TerminatorQuestion>& question);
  void AsideFailed(const std::string& what);

  const LoopOptions options_;
  Metrics& metrics_;
  const SendCommands send_;

  // Owned by the thread.
  std::unique_ptr<Storage> storage_;
  Core core_;
  std::map<ReplicaId, int> pids_;
  std::map<std::string, std::vector<NodeGpu>> gpus_;  // by node name
  std::map<std::string, std::string> folders_;        // likewise
  std::map<std::string, std::string> hosts_;          // likewise
  std::set<std::string> warned_;                      // of the pool as it is set up
  Time last_tick_;
  Time last_look_;        // at the storage
  bool cleaning_ = true;  // a service before this one may have left something behind
  std::map<LaterReply, std::vector<Answered>> waits_;  // those whose answers come later
  bool waits_ended_ = false;
  bool broken_ = false;

  Queue queue_;
  std::mutex stop_mutex_;  // one Stop at a time
  Planner planner_;        // of the thread that plans
  AsideThread planning_;
  AsideThread drawing_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace espalier
