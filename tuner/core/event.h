#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"
#include "tuner/base/status.h"
#include "tuner/core/study.h"

namespace espalier {

// ---- Events: all that the core ever learns ---------------------------------------------------

// From clients. Each is answered by the Reply of the same Step.
// What is made with a request key is made once: a repeated event with the same key is answered with
// what the first one made. Empty: no key.
struct CreateStudy {
  StudySpec spec;
  bool exist_ok = false;
  std::string request_key{};
};
struct StopStudy {
  std::string name;
};
struct ResumeStudy {
  std::string name;
  std::int64_t max_trials = 0;  // 0: as it was
  double time_limit_s = 0;      // 0: as it was
};
struct TellValue {
  TrialId trial;
  std::optional<std::int64_t> step;  // absent: the one after the last
  double value = 0;
  bool final = false;
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
// The definition is to be as it was but for the name.
struct RenameStudy {
  StudyId study;
  std::string name;
  std::string json;  // the study file with that name
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
// RUNNING is for a WAITING trial only: of all who ask, one gets it.
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
};
// Of an ask-and-tell study: a trial that the next who asks gets, with these parameters and what is
// drawn then. Of one whose sampler is "queue": a trial that the pool runs, with these parameters.
struct EnqueueTrial {
  std::string study;
  Parameters fixed;
  std::map<std::string, std::string> user_attributes;
  std::string request_key;
  std::map<std::string, std::string> system_attributes{};
};
// System attributes of enqueued trials that the pool goes by.
// An object of texts: variables for the trial's processes, beside the study's.
inline constexpr char kTrialEnvironment[] = "espalier:environment";
// An object: what the trial's parameter file says, to the letter.
inline constexpr char kTrialParameters[] = "espalier:parameters";
// "true": the trial, which does not run, waits until this is "false", also where its study runs.
inline constexpr char kTrialHeld[] = "espalier:held";

// Ends a trial of the pool as PRUNED or FAIL: its processes are stopped, one that waits never
// starts. One that has ended stays as it is.
struct CancelTrial {
  TrialId trial;
  TrialState state = TrialState::kFail;
  std::string reason{};  // empty: by the user
};
// Reasons of trials that were cancelled as FAIL begin so.
inline constexpr char kCancelled[] = "cancelled";

// What the program of an enqueued trial tells, once under its key.
struct RecordReport {
  TrialId trial;
  std::string key;                 // a system attribute; if there is one, nothing happens
  std::string value;               // JSON
  std::optional<double> number{};  // of it; what is no finite number enters no curve
  std::optional<std::int64_t>
      step{};  // absent: it is final, and counts once the trial has succeeded
};
// An intermediate value of a RUNNING trial.
struct ReportValue {
  TrialId trial;
  std::optional<std::int64_t> step;  // absent: the one after the last
  double value = 0;
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
// asks again. Asked again by who holds them they are renewed.
struct AcquireSlots {
  TrialId trial;
  int slots = 1;
  std::string node;  // by name; empty: any
  double wait_s = 0;
};
// Who is silent for longer than the lease loses its slots.
struct RenewSlots {
  TrialId trial;
};
// Also takes back a request that waits.
struct ReleaseSlots {
  TrialId trial;
};

// From agents.
struct ReplicaReady {
  ReplicaId replica;
  std::string address;
  BatchBounds batch;
  std::int64_t total_steps = 0;
};
struct LiveReplica {
  ReplicaId replica;
  TrialId trial;
  int slot = 0;
  std::int64_t generation = 0;
  std::optional<ReplicaReady> ready;
};
// An agent joins or comes back. `replicas` are those whose exit it has not yet reported.
struct AgentHello {
  std::string node_name;
  int slots = 0;
  std::vector<LiveReplica> replicas;
  std::string gpu_type{};               // slots of one node are alike; empty: CPU slots
  bool spot = false;                    // may be taken away at short notice
  double price_per_hour = 0;            // of the whole node; 0: not told
  std::optional<double> leaves_in_s{};  // it has been told to go
};
// The node goes away in so many seconds, as a cloud or batch system has told its agent.
struct AgentLeaving {
  NodeId node;
  double within_s = 0;
};
// The agent's stream broke. Its replicas are lost only when its lease runs out.
struct AgentGone {
  NodeId node;
};
struct ReplicaStarted {
  ReplicaId replica;
};
struct ReplicaRegrouped {
  ReplicaId replica;
  std::int64_t generation = 0;
  std::int64_t step = 0;
  double pause_s = 0;
  double form_s = 0;       // of which: forming the group
  double broadcast_s = 0;  // of which: parameters and state
};
struct ReplicaReport {
  ReplicaId replica;
  std::int64_t step = 0;
  double value = 0;
  double progress = 0;
};
// How long one replica computed (all but waiting for others), summed over `steps` steps.
struct ReplicaTime {
  ReplicaId replica;
  std::int64_t steps = 0;
  double compute_time_s = 0;
};
struct ReplicaProgress {
  ReplicaId replica;
  std::int64_t generation = 0;
  std::int64_t step = 0;
  double progress = 0;
  double epoch = 0;
  std::int64_t global_batch_size = 0;
  std::int64_t atomic_batch_size = 0;
  std::int64_t accumulation_steps = 0;
  double learning_rate = 0;
  GradientNoise noise;
  std::vector<ProfileEntry> profile;
  std::vector<ReplicaTime> replica_times;  // since the last ReplicaProgress
  double goodput = 0;                      // the trial's own figure, 0: unknown
  std::int64_t memory_bytes = 0;           // resident, of rank 0
  std::int64_t device_memory_bytes = 0;    // 0: no accelerator
  std::int64_t skipped_steps = 0;          // so far: their gradients were not finite
  double loss_scale = 0;                   // of mixed precision, 0: none
};
struct ReplicaCheckpoint {
  ReplicaId replica;
  std::string path;
};
struct ReplicaFinished {
  ReplicaId replica;
  std::optional<double> value;
  std::string failure{};  // why the program gave up by its own verdict; empty: it did not
};
// A replica has waited for the others of its group for longer than any of them should take.
struct ReplicaStuck {
  ReplicaId replica;
  std::int64_t generation = 0;
  double waited_s = 0;
};
struct ReplicaExited {
  ReplicaId replica;
  int exit_code = 0;  // -1: by a signal, or never started
  int signal = 0;
  std::string last_output;
  std::string error;  // why it could not be started; with a signal: why the agent killed it
};

// Time passed: at Core::NextDeadline, or at any other moment.
struct Tick {};

using Event =
    std::variant<CreateStudy, StopStudy, ResumeStudy, TellValue, PinTrial, DrainNode, DeleteStudy,
                 RenameStudy, SetStudyAttribute, CreateTrial, AskTrial, EnqueueTrial, ReportValue,
                 TellEnd, CancelTrial, RecordReport, SetTrialAttributes, SuggestParameter,
                 SetTrialAttribute, SetIntermediateValue, SetTrialState, AcquireSlots, RenewSlots,
                 ReleaseSlots, AgentHello, AgentLeaving, AgentGone, ReplicaReady, ReplicaStarted,
                 ReplicaRegrouped, ReplicaReport, ReplicaProgress, ReplicaCheckpoint,
                 ReplicaFinished, ReplicaStuck, ReplicaExited, Tick>;

// ---- Commands: all that the core ever asks for -----------------------------------------------
// They go to the agent of `node` after the changes of their step are committed. Each can be
// repeated or lost; the next AgentHello puts things right.

struct StartReplicaCommand {
  NodeId node;
  ReplicaId replica;
  TrialId trial;
  int slot = 0;
};
struct GroupMember {
  ReplicaId replica;
  std::string address;
  NodeId node;

  friend bool operator==(const GroupMember&, const GroupMember&) = default;
};
struct RegroupCommand {
  NodeId node;
  ReplicaId replica;  // to whom
  std::int64_t generation = 0;
  std::vector<GroupMember> members;  // by rank; empty: checkpoint and leave
  bool abandon = false;
};
struct StopReplicaCommand {
  NodeId node;
  ReplicaId replica;
  double grace_s = 0;
};
using Command = std::variant<StartReplicaCommand, RegroupCommand, StopReplicaCommand>;

// The answer to a client's event, or to AgentHello.
struct Reply {
  absl::Status status;
  StudyId study;             // CreateStudy, StopStudy, ResumeStudy
  TrialId trial;             // PinTrial, CreateTrial, AskTrial, EnqueueTrial
  NodeId node;               // AgentHello, DrainNode
  bool should_stop = false;  // TellValue
  bool updated = false;      // SetTrialState, CancelTrial, RecordReport
  bool existed = false;      // CreateStudy, AskTrial, EnqueueTrial: made by an earlier event
  // AcquireSlots, RenewSlots: what the trial holds, and for how long without a word; or what it
  // waits for.
  std::vector<Slot> slots{};
  double lease_s = 0;
  std::string waits_for{};
  bool later = false;  // AcquireSlots: this is no answer, it comes in StepResult::late
};

}  // namespace espalier
