#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core/core.h"
#include "tuner/simulator/agenda.h"
#include "tuner/simulator/process_starts.h"
#include "tuner/simulator/simulated_engine.h"
#include "tuner/simulator/workload.h"

namespace espalier {

// A simulated machine.
struct VirtualNode {
  std::string name;
  int slots = 1;
  double joins_s = 0;
  std::optional<double> leaves_s{};  // its processes die with it
  std::optional<double> notice_s{};  // with leaves_s: so long before, its agent says so
  std::string gpu_type{};
  bool spot = false;
  double price_per_hour = 0;
};

struct VirtualPoolOptions {
  std::vector<VirtualNode> nodes;
  double resize_s = 1;   // training stands still when a group changes or comes back
  double start_s = 0.5;  // from a replica's start to Ready; the others train on meanwhile
  StartLoad start_load;  // what a start takes besides start_s
  // A replica that leaves a group waits with its agent, and is ready so soon when its trial starts
  // one there again; nullopt: agents keep no spares.
  std::optional<double> spare_start_s{};
  bool whole_steps = false;      // groups change at the end of an optimizer step, as real ones do
  double progress_period_s = 1;  // how often trials tell step times, as the real ones do
  CoreOptions core;  // with a pool size: a simulated engine starts nodes of its templates
  // Sees every step of the core, e.g. to write a transcript.
  std::function<void(Time, const Event&, const StepResult&)> observer;
};

// The production core on virtual time, with simulated agents and elastic trials that behave as real
// ones do when nothing fails: a replica needs its time to start, shares processors with the other
// starts of its node or was kept as a spare, a group trains on until joiners are ready, stands
// still while it regroups, reports after every step and tells its step times once a second; a trial
// that is paused leaves a checkpoint and resumes from it. Messages take no time. Nothing is random:
// the same load and options give the same bytes. One owner, one thread.
class VirtualPool {
 public:
  // The load must outlive the pool.
  VirtualPool(Workload& load, VirtualPoolOptions options);
  ~VirtualPool();
  VirtualPool(const VirtualPool&) = delete;
  VirtualPool& operator=(const VirtualPool&) = delete;

  // Pools begin here; every moment in the record counts from it.
  static constexpr Time kStart{1'000'000'000};

  Reply Client(const Event& event) { return Step(event); }
  // Until all studies have ended and nothing runs any more, or virtual time is over.
  void Run(double until_s);

  const TunerState& state() const { return core_.state(); }
  const Core& core() const { return core_; }
  double now_s() const { return SecondsBetween(kStart, agenda_.now()); }
  std::int64_t steps() const { return steps_; }
  // The promise that each report of a trial left it with.
  const std::vector<std::pair<TrialId, double>>& promises() const { return promises_; }
  // Reported steps that were trained and have to be trained again, with their fractions: what
  // trials lost with machines that took all their replicas.
  double lost_steps() const { return lost_steps_; }
  // What nodes cost: they and their slots from when they were asked for, or joined, until they
  // left, or `until`.
  struct NodeUse {
    double node_seconds = 0;
    double slot_seconds = 0;
    double price = 0;
    int most_nodes = 0;  // at a time
  };
  NodeUse UseOfNodes(Time until) const;

 private:
  struct Process {
    TrialId trial{};
    NodeId node;
    bool leaving = false;  // its exit is on its way
    Membership told;       // newest one
  };
  // One trial's training.
  struct Training {
    std::unique_ptr<TrialTruth> truth;
    std::vector<ReplicaId> members;
    std::int64_t generation = 0;
    std::int64_t serial = 0;  // happenings of older ones are void
    bool runs = false;
    bool began = false;  // has trained before: to come back costs a pause
    int nodes = 1;
    Pace pace;
    double done = 0;       // reported steps, with the fraction of the next one
    Time since;            // when `done` was so
    double told_done = 0;  // when its progress was last told
    Time told_at;
    bool warm = false;  // the first step of a group is not timed
    Time step_ends;     // until then a group that is told to change trains on
    std::int64_t reported = 0;
    double checkpoint = 0;
  };
  struct Starts {
    ProcessStarts queue;
    std::int64_t serial = 0;  // happenings of older ones are void
  };

  Reply Step(const Event& event);
  void DoCommands();
  void AskEngine(const std::vector<NodeRequest>& requests);
  void EngineHappens();
  const NodeTemplate& TemplateOfNode(const std::string& name) const;
  void Do(const StartReplicaCommand& command);
  void Do(const RegroupCommand& command);
  void Do(const StopReplicaCommand& command);
  // Nodes lose nothing here, and keep no copies.
  void Do(const CopyCheckpointCommand&) {}
  void Do(const DropCheckpointsCommand&) {}
  void Do(const EndSparesCommand&) {}
  void Do(const RanksMeetCommand&) {}
  void In(double delay_s, std::function<void()> happening);
  // Nodes by their place in the options.
  void Join(std::size_t node);
  void Notice(std::size_t node);
  void Leave(std::size_t node);
  void BeginStart(ReplicaId replica, NodeId node);
  void PlanStarts(NodeId node, Starts& starts);
  void Started(NodeId node, std::int64_t serial);
  void Ready(ReplicaId replica);
  bool TakeSpare(TrialId trial, NodeId node);
  double StepLeft(const Training& training) const;
  void Form(TrialId trial, const Membership& group);
  void Formed(TrialId trial);
  void Work(TrialId trial);
  void PlanWork(TrialId trial, Training& training);
  void TellProgress(Training& training);
  void Advance(Training& training);
  void Halt(Training& training);
  void Park(ReplicaId replica);
  void Exit(ReplicaId replica, int signal, double delay_s = 0);
  void Exited(ReplicaId replica, int signal);
  void Finish(TrialId trial);
  bool Over() const;

  Workload& load_;
  VirtualPoolOptions options_;  // nodes of the engine are added
  Core core_;
  Agenda agenda_{kStart};
  std::int64_t steps_ = 0;
  std::vector<std::pair<TrialId, double>> promises_;
  double lost_steps_ = 0;
  std::vector<Command> commands_;
  bool doing_ = false;
  std::map<std::size_t, NodeId> node_ids_;
  // From when to when a node costs; open while it is there.
  struct NodeSpan {
    std::size_t node = 0;
    Time from{};
    std::optional<Time> to{};
  };
  std::vector<NodeSpan> node_spans_;
  std::unique_ptr<SimulatedEngine> engine_;          // if there is one
  std::map<std::string, Time> asked_;                // of the engine, and when
  std::map<std::string, std::size_t> engine_nodes_;  // those that are there
  std::map<ReplicaId, Process> processes_;
  std::map<TrialId, Training> trainings_;
  std::map<NodeId, Starts> starts_;
  std::map<std::pair<TrialId, NodeId>, int> spares_;
};

}  // namespace espalier
