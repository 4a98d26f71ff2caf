#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/kept_token.h"
#include "tuner/core/state/study.h"
#include "tuner/core/state/terminator_verdict.h"
#include "tuner/messages/membership.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

// ---- Events: all that the core ever learns ---------------------------------------------------

// From clients. Each is answered by the Reply of the same Step.
// What is made with a request key is made once: a repeated event with the same key is answered with
// what the first one made. Empty: no key.
struct CreateStudy {
  StudySpec spec;
  bool exist_ok = false;
  std::string request_key{};
  std::string note{};  // of what could not be checked, for its record
};
struct StopStudy {
  std::string name;
};
struct ResumeStudy {
  std::string name;
  std::int64_t max_trials = 0;  // 0: as it was
  double time_limit_s = 0;      // 0: as it was
};
// Which process of a trial's program speaks, where its launcher has started several.
struct ProgramRank {
  int rank = 0;
  int ranks = 1;  // of the program

  bool of_several() const { return ranks > 1; }
};
struct TellValue {
  TrialId trial;
  std::optional<std::int64_t> step;  // absent: the one after the last
  double value = 0;
  bool final = false;
  ProgramRank from{};
  std::map<std::string, double> extra{};  // further figures of the step
};
struct PinTrial {
  std::string study;
  std::int64_t trial_number = 0;
  int slots = 0;  // 0: back to the allocator
};
// Nothing new is planned on the node, and what runs there leaves: elsewhere where slots allow, else
// at its end, or by `within_s`. Holds until it is undone.
struct DrainNode {
  std::string name;
  bool undo = false;
  double within_s = 0;  // what is still there then is shrunk or paused; 0: no such moment
};

// From clients that run trials themselves, in ask-and-tell studies. Attributes are for all studies.
struct DeleteStudy {
  StudyId study;
};
// Nothing but the study's name changes.
struct RenameStudy {
  StudyId study;
  std::string name;
};
struct SetStudyAttribute {
  StudyId study;
  bool system = false;  // else the user's
  std::string key;
  std::string value;  // JSON
};
struct SuggestParameter {
  TrialId trial;
  double value = 0;  // of a choice: its index
  Suggestion suggestion;
};
struct SetTrialAttribute {
  TrialId trial;
  bool system = false;  // else the user's
  std::string key;
  std::string value;  // JSON
};
struct SetIntermediateValue {
  TrialId trial;
  std::int64_t step = 0;
  double value = 0;
};
// Only a WAITING trial becomes RUNNING: of all clients that ask for it, one gets it.
struct SetTrialState {
  TrialId trial;
  TrialState state = TrialState::kRunning;
  std::vector<double> values;  // final; empty: as they were
};
// A trial as it was elsewhere, or as it is to be run.
struct TrialTemplate {
  TrialState state = TrialState::kWaiting;
  std::vector<double> values;
  Time started, ended;  // zero: none
  std::vector<std::pair<Suggestion, double>> parameters;
  std::map<std::int64_t, double> intermediate_values;
  Attributes attributes;
};
struct CreateTrial {
  StudyId study;
  std::shared_ptr<const TrialTemplate> content;  // null: an empty one that runs from now on
  std::string request_key{};
};
// A trial to run now: the first WAITING one, or a new one. What has no value yet is drawn by the
// study's sampler.
struct AskTrial {
  std::string study;
  Parameters fixed;  // if there are any, the trial is a new one
  std::string request_key;
  std::int64_t call = 0;  // see WithdrawAsk; 0: it is never withdrawn
};
// The client of an ask that may still wait for a draw has gone: it is answered with CANCELLED, and
// nothing is drawn for it. One that has been answered stays as it is.
struct WithdrawAsk {
  std::int64_t call = 0;  // as AskTrial says; no two asks of one process have the same
};
// A trial with these parameters. In an ask-and-tell study the next client that asks gets it, with
// what is drawn then; in a queued one (StudyKind::kQueued) the pool runs it as it is.
struct EnqueueTrial {
  std::string study;
  Parameters fixed;
  std::map<std::string, std::string> user_attributes;
  std::string request_key;
  std::map<std::string, std::string> system_attributes{};
  ProcessVariables environment{};  // of a trial that the pool runs
  // Its program may read its parameters from environment variables, so no two may share one. False:
  // it is told of them in another way.
  bool reads_variables = true;
};
// A system attribute of enqueued trials: the JSON object that the trial's parameter file holds,
// byte for byte.
inline constexpr char kTrialParameters[] = "espalier:parameters";

// A new trial of the pool, in the study of this one, that begins with its newest checkpoint and has
// its parameters but for these.
struct CloneTrial {
  TrialId parent;
  Parameters set;
  std::string request_key;
};

// A trial of the pool which does not run waits until it is let go, also where its study runs.
struct HoldTrial {
  TrialId trial;
  bool held = true;  // false: lets it go
};
// For those processes of a trial of the pool that have not started yet.
struct SetTrialEnvironment {
  TrialId trial;
  ProcessVariables environment;
};

// Ends a trial of the pool as PRUNED or FAIL: its processes are stopped, one that waits never
// starts. A trial that has ended stays unchanged.
struct CancelTrial {
  TrialId trial;
  TrialState state = TrialState::kFail;
  std::string reason{};  // empty: by the user
};

// What the program of an enqueued trial tells. Each key is recorded once.
struct RecordReport {
  TrialId trial;
  std::string key;                 // a system attribute; if there is one, nothing happens
  std::string value;               // JSON
  std::optional<double> number{};  // of it; what is not finite enters no curve, and ends as NaN
  std::optional<std::int64_t>
      step{};  // absent: it is final, and counts once the trial has succeeded
};
// An intermediate value of a RUNNING trial. The first one of a step stands.
struct ReportValue {
  TrialId trial;
  std::optional<std::int64_t> step;  // absent: the one after the last
  double value = 0;
  ProgramRank from{};
  std::map<std::string, double> extra{};  // further figures of the step
};
// Whether the ranks of a trial's program stop at the step, or save and end at it: all that ask at
// it are answered alike.
enum class Question { kStop, kSave };
struct AskVerdict {
  TrialId trial;
  std::int64_t step = 0;
  Question question = Question::kStop;
};
// How a RUNNING trial ended. Told again with the same content it changes nothing and is answered
// alike.
struct TellEnd {
  TrialId trial;
  TrialState state = TrialState::kComplete;
  std::vector<double> values;  // of COMPLETE: one a direction
};
struct SetTrialAttributes {
  TrialId trial;
  Attributes attributes;  // others stay
};

// Slots of the pool for a trial that its client runs. Answered when they are the trial's, or after
// `wait_s` with what the request waits for; it stays in the queue then, for as long as its client
// asks again. If their holder asks again, they are renewed.
struct AcquireSlots {
  TrialId trial;
  int slots = 1;
  std::string node;  // by name; empty: any
  double wait_s = 0;
};
// A client that is silent for longer than the lease loses its slots.
struct RenewSlots {
  TrialId trial;
};
// Also takes back a request that waits.
struct ReleaseSlots {
  TrialId trial;
};

// From agents.
struct LiveReplica {
  ReplicaId replica;
  TrialId trial;
  int slot = 0;
  std::int64_t generation = 0;
  std::optional<ReplicaReady> ready;
  std::string started_from{};     // fingerprint of the checkpoint that it was given, else its path
  std::vector<int> more_slots{};  // as it was started with
  std::optional<RanksWait> ranks_wait{};
};
// A checkpoint of a trial that a node has.
struct HeldCheckpoint {
  std::string study;
  std::int64_t number = 0;  // the trial's
  std::string name;         // of its file in the trial's checkpoint folder; empty: the whole folder
  std::string fingerprint;
  bool fetched = false;  // a copy: the trial has not run there since
};
struct HeldCheckpoints {
  std::vector<HeldCheckpoint> files;
  bool more = false;  // there are, of other trials
};
// An agent joins or comes back. `replicas` are those whose exit it has not yet reported.
struct AgentHello {
  std::string node_name;
  int slots = 0;
  std::vector<LiveReplica> replicas;
  std::string gpu_type{};                        // slots of one node are alike; empty: CPU slots
  bool spot = false;                             // may be taken away at short notice
  double price_per_hour = 0;                     // of the whole node; 0: not told
  std::optional<double> leaves_in_s{};           // it has been told to go
  std::optional<HeldCheckpoints> checkpoints{};  // none: it copies none, and gives none away
  // The mark of the folder that it shares with others for checkpoints; empty: its own disk.
  std::string shared_folder{};
  std::map<int, std::string> unusable_slots{};  // see AgentSlots
  // Number of GPUs that the slots are spread over round-robin: slot i is on GPU i % gpus. 0: CPU
  // slots.
  int gpus = 0;
  bool spans_launches = false;  // it can start its share of ranks that are on several nodes
  bool clones = false;          // it can copy a checkpoint from one trial to another
};
// Slots of the node on which nothing is to be started at present, and why: all of them, so that
// those not listed can be used again.
struct AgentSlots {
  NodeId node;
  std::map<int, std::string> unusable;
};
// The node goes away in that many seconds, as a cloud or batch system has told its agent.
struct AgentLeaving {
  NodeId node;
  double within_s = 0;
};
// The agent's stream broke. Its replicas are lost only when its lease runs out.
struct AgentGone {
  NodeId node;
};
// In the next three `node` is that of the agent which says so, and which speaks for its own
// replicas alone; none: it is known that they are its own.
struct ReplicaStarted {
  ReplicaId replica;
  NodeId node{};
};
// What a replica says, as its agent passes it on.
struct FromReplica {
  ReplicaId replica;
  ReplicaMessage message;
  NodeId node{};
};
// Whether a replica could not be started because its checkpoint could not be had.
enum class CheckpointFailure {
  kNone,
  kMissing,  // it may still be had from a node that is away
  kGone,     // none of its source nodes has a whole copy
};
struct ReplicaExited {
  ReplicaId replica;
  int exit_code = 0;  // -1: by a signal, or never started
  int signal = 0;
  std::string last_output;
  std::string error;  // why it could not be started; with a signal: why it was killed
  CheckpointFailure checkpoint = CheckpointFailure::kNone;
  NodeId node{};
  bool agent_stops = false;    // its agent ends, and has ended it
  bool node_at_fault = false;  // with `error`: for want of what is the node's, as room on its disk
  std::string rank{};          // of several, which one it tells of, and where: "rank 1 of 2 on oak"
};
// A checkpoint of the trial has come to the node, or (with an error) could not be brought there.
struct CheckpointCopied {
  NodeId node;
  TrialId trial;
  CheckpointLabel what;
  std::string error{};
  std::int64_t bytes = 0;  // over the network
  std::string path{};  // where it lies now, on the node
};

// The pool is divided by this policy from now on, whatever studies name; also after a restart.
struct SetPoolPolicy {
  PluginSpec policy;
};

// From now on, a token with this hash grants its role.
struct AddToken {
  KeptToken token;
};
// By its id, or by its name.
struct RemoveToken {
  std::string token;
};

struct Plan;  // scheduling/plan.h
// The answer to StepResult::plan.
struct PlanMade {
  std::shared_ptr<const Plan> plan;
};

struct Drawn;  // samplers/draw.h
// The answer to one of StepResult::draws.
struct DrawMade {
  StudyId study;
  std::int64_t number = 0;  // of the request
  std::shared_ptr<const Drawn> drawn;
  // Where there is none: why the sampler has none, for people, and will have none. The study stops.
  // Empty: it is to be asked again.
  std::string failure{};
};

// The answer to one of StepResult::questions.
struct TerminatorAnswered {
  StudyId study;
  std::int64_t number = 0;  // of the question
  TerminatorVerdict verdict{};
};

// Time passed: at Core::NextDeadline, or at any other moment.
struct Tick {};

using Event =
    std::variant<CreateStudy, StopStudy, ResumeStudy, TellValue, PinTrial, DrainNode, DeleteStudy,
                 RenameStudy, SetStudyAttribute, CreateTrial, AskTrial, WithdrawAsk, EnqueueTrial,
                 ReportValue, AskVerdict, TellEnd, CancelTrial, CloneTrial, HoldTrial,
                 SetTrialEnvironment, RecordReport, SetTrialAttributes, SuggestParameter,
                 SetTrialAttribute, SetIntermediateValue, SetTrialState, AcquireSlots, RenewSlots,
                 ReleaseSlots, AgentHello, AgentLeaving, AgentSlots, AgentGone, ReplicaStarted,
                 FromReplica, ReplicaExited, CheckpointCopied, SetPoolPolicy, AddToken, RemoveToken,
                 PlanMade, DrawMade, TerminatorAnswered, Tick>;

// ---- Commands: all that the core ever asks for -----------------------------------------------
// They go to the agent of `node` after the changes of their step are committed. Each can be
// repeated or lost; the next AgentHello puts things right.

struct StartReplicaCommand {
  NodeId node;
  ReplicaId replica;
  TrialId trial;
  int slot = 0;
  // The other slots of the node that the trial holds, all of which its first process may use.
  std::vector<int> more_slots{};
  bool joins = false;  // others of its group hand it the training state: it needs no checkpoint
  int replicas = 0;    // that the group which it joins will have with it
  // The trial's newest checkpoint, and nodes that have it, connected ones first. None: its path is
  // all there is to know, or it has none.
  CheckpointLabel from{};
  std::vector<NodeId> sources{};
  // Of ranks on several nodes: how many each has, by their ranks, and which of them this one is.
  std::vector<int> ranks_of_nodes{};
  int node_rank = 0;
};
struct RegroupCommand {
  NodeId node;
  ReplicaId replica;      // the addressee
  Membership membership;  // without members: checkpoint and leave
};
// The ranks of a trial on several nodes, all of which wait, are to meet there.
struct RanksMeetCommand {
  NodeId node;
  ReplicaId replica;    // the addressee
  std::string address;  // host:port
};
struct StopReplicaCommand {
  NodeId node;
  ReplicaId replica;
  double grace_s = 0;
};
// The node is to fetch that checkpoint from one of the sources and keep it.
struct CopyCheckpointCommand {
  NodeId node;
  TrialId trial;
  CheckpointLabel what;
  std::vector<NodeId> sources;
  // Instead of sources: the number of the trial of the same study whose checkpoint it is, in the
  // place where the node has that trial's; -1: it is the trial's own.
  std::int64_t of = -1;
};
// Copies of the trial's checkpoints are not needed there any more. The trial may be deleted.
struct DropCheckpointsCommand {
  NodeId node;
  std::string study;
  std::int64_t trial_number = 0;
};
// A client has been given the slot: replicas that wait there to be used again hold memory of its
// GPU, and are to end.
struct EndSparesCommand {
  NodeId node;
  int slot = 0;
};
using Command =
    std::variant<StartReplicaCommand, RegroupCommand, RanksMeetCommand, StopReplicaCommand,
                 CopyCheckpointCommand, DropCheckpointsCommand, EndSparesCommand>;

// What events are answered with, beside a status. `existed`: it was made by an earlier event.
// To CreateStudy, StopStudy and ResumeStudy.
struct StudyReply {
  StudyId study;
  bool existed = false;
};
// To PinTrial, CreateTrial, AskTrial, EnqueueTrial, CloneTrial; `updated` is told of what
// SetTrialState, CancelTrial and RecordReport have changed.
struct TrialReply {
  TrialId trial;
  bool existed = false;
  bool updated = false;
};
// To AgentHello and DrainNode.
struct NodeReply {
  NodeId node;
};
// To TellValue, ReportValue and AskVerdict.
struct ValueReply {
  bool should_stop = false;  // to AskVerdict: yes to its question
  std::string note{};        // what of the value does not count, and why; empty: all of it does
};
// To AcquireSlots and RenewSlots: what the trial holds, or what it waits for.
struct SlotsReply {
  std::vector<Slot> slots;
  double lease_s = 0;  // for how long without a word
  std::string waits_for;
};
// To AcquireSlots and AskTrial: this is no answer, it comes in StepResult::late.
struct LaterReply {
  TrialId trial{};       // that asked for slots; all that asked for the same trial get one answer
  std::int64_t ask = 0;  // or the ask of this number
  friend auto operator<=>(const LaterReply&, const LaterReply&) = default;
};

// The answer to a client's event, or to AgentHello. Readers get zeros of what it does not say.
struct Reply {
  absl::Status status;
  std::variant<std::monostate, StudyReply, TrialReply, NodeReply, ValueReply, SlotsReply,
               LaterReply>
      content{};

  StudyId study() const { return As<StudyReply>().study; }
  TrialId trial() const { return later() ? As<LaterReply>().trial : As<TrialReply>().trial; }
  NodeId node() const { return As<NodeReply>().node; }
  bool existed() const { return As<StudyReply>().existed || As<TrialReply>().existed; }
  bool updated() const { return As<TrialReply>().updated; }
  bool should_stop() const { return As<ValueReply>().should_stop; }
  std::string note() const { return As<ValueReply>().note; }
  std::vector<Slot> slots() const { return As<SlotsReply>().slots; }
  double lease_s() const { return As<SlotsReply>().lease_s; }
  std::string waits_for() const { return As<SlotsReply>().waits_for; }
  LaterReply wait() const { return As<LaterReply>(); }
  bool later() const { return std::holds_alternative<LaterReply>(content); }

 private:
  template <typename Kind>
  Kind As() const {
    const Kind* kind = std::get_if<Kind>(&content);
    return kind == nullptr ? Kind{} : *kind;
  }
};

}  // namespace espalier
