#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/pool/allocation_figures.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/options.h"
#include "base/rarely.h"
#include "search_spaces/parameter.h"
#include "search_spaces/search_space.h"
#include "tuner/core/state/belief.h"
#include "tuner/core/state/constraint.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/like.h"
#include "tuner/core/state/lineage.h"
#include "tuner/core/state/population_spec.h"
#include "tuner/messages/training_figures.h"

namespace espalier {

// ---- What a user asks for ------------------------------------------------------------------

enum class BatchMode {
  kFixed,     // the global batch stays; replicas and accumulation change under it
  kAdaptive,  // the global batch grows within its range by goodput and the scaling rule
};

// A sampler, pruner, terminator or policy by name, with its numeric settings.
struct PluginSpec {
  std::string name;
  Options options;

  friend bool operator==(const PluginSpec&, const PluginSpec&) = default;
};

// How long the replicas of a trial may take for what takes long with a large model. The defaults
// suit a training state of 10 GB on a disk or link of 100 MB/s: docs/elastic_training_loop.md.
struct TrialTimeouts {
  double start_s = 600;  // until a process that is to join a group is ready
  double stall_s = 30;   // without progress while a group forms, hands over state or saves
  double pause_s = 300;  // to reach a step boundary, save and leave; longer while bytes are written
  double exit_s = 60;    // to exit after the trial's end, or after another replica's
  double drain_s = 120;  // so long before a node's end, or at half its notice, trials leave

  friend bool operator==(const TrialTimeouts&, const TrialTimeouts&) = default;
};
inline constexpr TrialTimeouts kNoTimeouts{
    .start_s = 0, .stall_s = 0, .pause_s = 0, .exit_s = 0, .drain_s = 0};
// How long ranks of a trial may run on when another has ended well, unless its study's exit_s says:
// rank 0 often evaluates and saves alone at the end.
inline constexpr double kDefaultRanksApart_s = 600;

// The timeouts of `own`, and those of `pools` where `own` has 0.
TrialTimeouts Merge(const TrialTimeouts& own, const TrialTimeouts& pools);

// As command lines take it: "pollux" or "fixed:slots=2".
std::string TextOf(const PluginSpec& plugin);

inline constexpr std::size_t kMaxPoints = 1000;  // to try first, of one study

inline constexpr double kMinShare = 0.001;
inline constexpr double kMaxShare = 1000;

// What creates a study's trials, and what runs them.
enum class StudyKind {
  kTuned,   // the sampler draws them and the pool runs them
  kQueued,  // clients enqueue them with all of their parameters and the pool runs them
  // Clients create, run and end them; the pool has no part in it. Trials may have several final
  // values, one a direction, and parameters that no search space names.
  kByClients,
};

// The sampler of queued studies, which draws nothing, and of no others.
inline constexpr char kQueueSampler[] = "queue";

// The study file as its user worded it, its search space inline. It says nothing that the fields
// of the study do not say, and two studies that are worded differently are the same study.
struct StudyWording {
  std::string text;          // empty: the study was made otherwise
  std::uint64_t fields = 0;  // a mark of the fields that the text was read into; 0: it is not known

  friend bool operator==(const StudyWording&, const StudyWording&) { return true; }
};

// Where the trials' program prints its metric (base/patterns); empty: it reports otherwise.
struct MetricPatterns {
  std::string value;
  std::string step;  // empty: in `value`, or values are counted

  friend bool operator==(const MetricPatterns&, const MetricPatterns&) = default;
};

// The files in which the trials' program writes its metric; without a path: in none.
struct MetricFiles {
  std::string path;   // a file, or with a tag a folder; with {NAME} as in a command
  std::string value;  // the key in a line of JSON
  std::string step;   // likewise; empty: "step"
  std::string tag;    // of a scalar in TensorBoard's files of events; empty: lines of JSON

  friend bool operator==(const MetricFiles&, const MetricFiles&) = default;
};

struct StudySpec {
  std::string name;
  std::string metric = "value";  // only shown; what trials report is its value
  // Of a study that the pool runs with several directions: the metrics of the second and of further
  // ones. Trials report them as figures of these names beside the first one's value.
  std::vector<std::string> other_metrics;
  std::vector<Constraint> constraints;  // on figures that trials report, one a figure and side
  MetricPatterns from_output;
  MetricFiles from_files;
  bool mean_of_ranks = false;  // else ranks of one program have to report alike
  bool has_metric = true;      // false: jobs, which may end well without having reported anything
  StudyKind kind = StudyKind::kTuned;
  std::vector<Direction> directions{Direction::kMinimize};  // several: several objectives
  SearchSpace space;
  std::vector<Parameters> points;  // of the first trials; what one does not name is drawn
  Parameters fixed;                // of all trials: the sampler searches the others
  std::vector<Belief> prior;       // where good values are expected, one a parameter
  LikeStudy like;                  // whose trials the sampler learns from, too
  PluginSpec sampler{"tpe", {}};
  PluginSpec pruner{"none", {}};
  PopulationSpec population;
  PluginSpec terminator{"none", {}};
  PluginSpec policy{"promise_goodput", {}};  // of a pool that has none of its own
  bool names_policy = false;                 // whether the study file has the key
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  // Modules that programs in Python are started with; nullopt: each has an interpreter of its own.
  std::optional<std::vector<std::string>> preload{std::in_place};
  // Files that trials read, with what to do when one is missing. Relative ones are taken from the
  // study file's folder.
  std::map<std::string, std::string> needs;
  std::string directory;                   // working directory of the trials, absolute
  std::int64_t max_trials = 0;             // 0: no limit
  double time_limit_s = 0;                 // 0: no limit
  double cost_limit = 0;                   // of the slots held, 0: no limit
  double slot_price_per_hour = 0;          // 0: unknown
  std::optional<double> target;            // the study ends when a trial reports this or better
  std::int64_t max_concurrent_trials = 0;  // 0: as many as slots allow
  std::int64_t max_step = 0;               // last step a trial will report, 0: unknown
  int best_k = 1;                          // promise: the chance to end among so many best trials
  int min_slots = 1;
  int max_slots = 0;  // 0: as many as the pool has
  // The only numbers of slots that a trial may have, ascending, with min_slots as the first and
  // max_slots as the last; empty: all between these.
  std::vector<int> slot_sizes;
  int slots_per_node = 0;  // so many slots of a trial may be on one node; 0: all
  // A program that is not elastic is started again to have another number of slots.
  bool resize_by_restart = false;
  // What starts a rank for each slot of a trial, and options of it (base/launch_kinds.h); empty: a
  // trial's first process has all of its slots.
  std::vector<std::string> launch;
  double share = 1;  // weight beside the shares of the other studies on the pool
  BatchMode batch_mode = BatchMode::kFixed;
  std::uint64_t seed = 0;
  int max_consecutive_failures = 5;
  int max_restarts = 2;                  // how often a trial that lost all replicas starts again
  bool replace_stragglers = true;        // else they are left alone
  double stop_grace_s = 5;               // between SIGTERM and SIGKILL
  TrialTimeouts timeouts = kNoTimeouts;  // 0: the pool's
  StudyWording wording;                  // so that WriteStudy writes what the user wrote

  // Values are read from what programs print or write, and they need not tell any.
  bool reads_values() const { return !from_output.value.empty() || !from_files.path.empty(); }
  bool queued() const { return kind == StudyKind::kQueued; }
  bool by_clients() const { return kind == StudyKind::kByClients; }
  // The kind of a study that the pool runs follows from its sampler: for readers of what users
  // give.
  void SetKindBySampler() {
    if (!by_clients())
      kind = sampler.name == kQueueSampler ? StudyKind::kQueued : StudyKind::kTuned;
  }
  // The one of a study that the pool runs; of several, the first.
  Direction direction() const {
    return directions.empty() ? Direction::kMinimize : directions.front();
  }

  // Of the second value of a trial and of further ones.
  std::span<const Direction> other_directions() const {
    return std::span(directions).subspan(std::min<std::size_t>(1, directions.size()));
  }

  // Whether a trial may have so many slots, its bounds aside.
  bool HasSize(int slots) const {
    return slot_sizes.empty() ||
           std::find(slot_sizes.begin(), slot_sizes.end(), slots) != slot_sizes.end();
  }

  friend bool operator==(const StudySpec&, const StudySpec&) = default;
};

// ---- What becomes of it --------------------------------------------------------------------

// JSON texts by key, kept as they were written. Those of users and those of programs (samplers,
// pruners, dashboards) are kept apart.
struct Attributes {
  std::map<std::string, std::string> user;
  std::map<std::string, std::string> system;

  friend bool operator==(const Attributes&, const Attributes&) = default;
};

// A parameter that a client drew by itself, from a distribution of its own.
struct Suggestion {
  std::string name;
  std::string distribution;  // JSON, in Optuna's format
  std::string kind;          // distributions of one name in a study must have equal kinds

  friend bool operator==(const Suggestion&, const Suggestion&) = default;
};

// The value that a trial has for a suggestion of its study.
struct SuggestedValue {
  int suggestion = 0;  // index in Study::suggestions
  double value = 0;    // of a choice: its index

  friend bool operator==(const SuggestedValue&, const SuggestedValue&) = default;
};

enum class StudyState { kRunning, kStopped, kComplete, kFailed };

enum class TrialState { kWaiting, kRunning, kPaused, kComplete, kPruned, kFail };

// The party that changes a trial's state.
enum class StateSource {
  kPool,    // which runs the trial
  kClient,  // which runs the trial
  kImport,  // it was elsewhere, and begins here as it was
};

// The single truth about which trial state may follow which.
constexpr bool MayFollow(TrialState from, TrialState to, StateSource source) {
  switch (source) {
    case StateSource::kImport:
      return from == TrialState::kWaiting && to != TrialState::kPaused;
    case StateSource::kClient:
      return (from == TrialState::kWaiting || from == TrialState::kRunning) &&
             to != TrialState::kPaused;
    case StateSource::kPool:
      break;
  }
  switch (from) {
    case TrialState::kWaiting:
      return to == TrialState::kRunning || to == TrialState::kPruned || to == TrialState::kFail;
    case TrialState::kRunning:
      return to == TrialState::kPaused || to == TrialState::kComplete ||
             to == TrialState::kPruned || to == TrialState::kFail;
    case TrialState::kPaused:
      return to == TrialState::kRunning || to == TrialState::kPruned || to == TrialState::kFail;
    case TrialState::kComplete:
    case TrialState::kPruned:
    case TrialState::kFail:
      return false;
  }
  return false;
}

constexpr bool Ended(TrialState state) {
  return state == TrialState::kComplete || state == TrialState::kPruned ||
         state == TrialState::kFail;
}

// Upper-case names, as users, the wire and the database see them.
std::string_view ToString(TrialState state);
std::string_view ToString(StudyState state);

// "minimize" and "maximize", as study files and Optuna write them.
std::string_view ToString(Direction direction);
std::optional<Direction> DirectionOf(std::string_view word);

struct Slot {
  NodeId node;
  int index = 0;

  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// What a node is and costs, as its agent has said.
struct NodeTerms {
  Time since;
  int slots = 0;
  std::string gpu_type;
  bool spot = false;
  double price_per_hour = 0;  // of the whole node; 0: nothing, or it was not told

  friend bool operator==(const NodeTerms&, const NodeTerms&) = default;
};

// A span of time in which a trial held the same slots. `to` is zero while it lasts.
struct SlotSpan {
  Time from;
  Time to;
  std::vector<Slot> slots;

  friend bool operator==(const SlotSpan&, const SlotSpan&) = default;
};

// One regroup, as the replicas measured it.
struct Resize {
  Time at;
  std::int64_t generation = 0;
  int from_replicas = 0;
  int to_replicas = 0;
  double pause_s = 0;  // longest over the members
  bool after_loss = false;
  double form_s = 0;       // of the longest pause: forming the group
  double broadcast_s = 0;  // of the longest pause: parameters and state

  friend bool operator==(const Resize&, const Resize&) = default;
};

// Identifies one of a trial's checkpoints, whichever nodes have it.
struct CheckpointLabel {
  std::int64_t step = 0;    // optimizer steps in it
  std::string name;         // of its file in the trial's checkpoint folder; empty: the whole folder
  std::string fingerprint;  // of its content; empty: unknown, it cannot be fetched
  Time at;                  // when the tuner learnt that it was saved
  // In which it was saved: replicas of this generation or a later one have come as far.
  std::int64_t generation = 0;

  // Whether it can be told from others, and fetched.
  bool known() const { return !fingerprint.empty(); }
  bool Is(const CheckpointLabel& other) const {
    return known() && fingerprint == other.fingerprint && name == other.name;
  }
  friend bool operator==(const CheckpointLabel&, const CheckpointLabel&) = default;
};

// The newest checkpoint of a trial that a node has.
struct CheckpointCopy {
  NodeId node;
  CheckpointLabel what;
  bool fetched = false;  // from another node; else the trial wrote it there
  std::string folder{};  // mark of the folder that machines share; empty: the node's own disk

  friend bool operator==(const CheckpointCopy&, const CheckpointCopy&) = default;
};

// So many replicas that are to join a group may fail in a row; then the trial stays at its size.
inline constexpr int kMaxFailedJoins = 3;

// Replicas of a trial that were to join its group and failed, since the last one that did its part.
struct FailedJoins {
  int in_a_row = 0;
  int works_at = 0;       // replicas that went on after the last one had failed
  std::string reason;     // what became of that: "exited with code 1: KeyError: 3"
  Time at;                // when
  std::int64_t step = 0;  // optimizer steps that the trial had done by then

  friend bool operator==(const FailedJoins&, const FailedJoins&) = default;
};

// What the ranks of one program have reported, by step and rank, as far as it is kept.
using RankValues = std::map<std::int64_t, std::map<int, double>>;

// Whether to go on, as all ranks of a program are told it at the same step: whichever asks first
// fixes it for the others. They go on up to `go_on`, and stop from `stop` on; -1: at no step yet.
struct AgreedVerdict {
  std::int64_t go_on = -1;
  std::int64_t stop = -1;

  bool asked() const { return go_on >= 0 || stop >= 0; }

  friend bool operator==(const AgreedVerdict&, const AgreedVerdict&) = default;
};

// Variables for a trial's processes, beside the study's: ascending by name, one a name.
using ProcessVariables = std::vector<std::pair<std::string, std::string>>;

// What a trial's program and its ranks have been answered, and what ranks have told.
struct RankAnswers {
  AgreedVerdict verdict;  // of a program that runs several ranks, since it was started last
  AgreedVerdict saving;   // of a plain program: up to where it does not save and end
  RankValues values;      // none once it has ended

  friend bool operator==(const RankAnswers&, const RankAnswers&) = default;
};

struct Trial {
  TrialId id;
  StudyId study;
  std::int64_t number = 0;  // in its study, from 0
  TrialState state = TrialState::kWaiting;
  bool held = false;       // it does not run until it is let go, even if its study runs
  bool cancelled = false;  // ended as FAIL on request, which is no failure for its study
  Parameters parameters;
  std::vector<IntermediateValue> values;  // ascending by step, one a step
  // Further figures that the program told with a value, by step and name; few programs tell any.
  std::map<std::int64_t, std::map<std::string, double>> extra;
  std::optional<double> value;   // final
  Time created, started, ended;  // zero: not yet
  std::string reason;            // why it was pruned, paused or failed
  std::string last_output;       // of a failed trial
  std::int64_t generation = 0;   // of its replica group
  int restarts = 0;
  Rarely<FailedJoins> failed_joins;
  Rarely<RankAnswers> ranks;
  int pinned_slots = 0;
  std::string checkpoint;  // path of the newest, where the trial wrote it; empty: none
  Rarely<CheckpointLabel> newest_checkpoint;  // the same one
  std::vector<CheckpointCopy> copies;         // ascending by node, one a node; older ones too
  std::vector<SlotSpan> spans;
  std::vector<Resize> resizes;
  TrainingFigures figures;       // as of its newest value or its end
  ProcessVariables environment;  // of queued studies only
  // Of the second direction and of further ones, final. Of a trial that the pool runs they follow
  // from its curves: the newest ones, once it has told of all metrics.
  std::vector<double> other_values;
  // What it has told of the study's other metrics, one after the other, each ascending by step.
  // Those of `extra`, as curves; only step, value, progress and time are set.
  Rarely<std::vector<std::vector<IntermediateValue>>> other_curves;
  // Only trials of ask-and-tell studies have these, but for the attributes.
  std::vector<SuggestedValue> suggested;  // in the order in which they were drawn
  Attributes attributes;
  Rarely<std::string> draw;  // what its parameters were drawn from (TrialDraw); empty: nothing was
  Rarely<Lineage> lineage;   // none: it began afresh
  // What it has to keep, each at most 0 where it does. Where its study has constraints, one for each
  // of them from its first value on: of its newest figures, NaN for one that it has not told yet.
  // Else as far as its attributes tell (search_spaces/formats/optuna/constraints.h).
  Rarely<std::vector<double>> constraints;

  friend bool operator==(const Trial&, const Trial&) = default;
};

enum class DecisionKind {
  kStart,
  kGrow,
  kShrink,
  kMove,
  kPrune,
  kPause,
  kResume,
  kRestart,
  kFinish,
  kFail,
  kPool,  // of nodes, which concerns every running study
  kStudy,
};
std::string_view ToString(DecisionKind kind);  // lower case: "grow"

// What was decided and why: the study's record.
struct Decision {
  Time at;
  std::int64_t trial_number = -1;  // -1: the study as a whole
  DecisionKind kind = DecisionKind::kStudy;
  int from_slots = 0;
  int to_slots = 0;
  std::string reason;
  std::optional<AllocationFigures> figures{};  // none: nobody who decided this has a model

  friend bool operator==(const Decision&, const Decision&) = default;
};

inline constexpr std::size_t kDecisionsShown = 20000;  // of one study; the database has all

// What the user asked for, of the values that may have been changed since.
struct AskedFor {
  std::int64_t max_trials = 0;
  double time_limit_s = 0;
  std::string policy;

  friend bool operator==(const AskedFor&, const AskedFor&) = default;
};
AskedFor AskedForBy(const StudySpec& spec);

// Why a study is complete that may have no more trials, for people.
std::string AllTrialsHaveEnded(const StudySpec& spec);

struct Study {
  StudyId id;
  StudySpec spec;  // as it is run: with its newest limits, and a policy that this release has
  AskedFor asked;
  StudyState state = StudyState::kRunning;
  std::string reason;  // why it stopped or ended
  Time created;
  Time ended;                      // zero: has not
  double active_s = 0;             // running time before running_since
  Time running_since;              // meaningful while running
  std::vector<TrialId> trials;     // by number
  std::deque<Decision> decisions;  // the newest ones, kDecisionsShown at the most
  std::int64_t decisions_made = 0;
  Attributes attributes;
  std::vector<Suggestion> suggestions;  // no two with the same name and distribution
  std::int64_t clones = 0;              // among its trials

  // Its trials but for clones: those of which spec.max_trials is the limit.
  std::int64_t counted() const { return std::ssize(trials) - clones; }

  void Note(Decision decision) {
    decisions.push_back(std::move(decision));
    ++decisions_made;
    if (decisions.size() > kDecisionsShown) decisions.pop_front();
  }
};

// Tells the study apart from all others of its name, also from those of other databases, whose ids
// may be the same.
std::string IdentityOf(const Study& study);

// The study as its study file has it: what its wording is of.
StudySpec DefinitionOf(const Study& study);

// Gives the study another name, in its wording too.
void Rename(StudySpec& spec, const std::string& name);

}  // namespace espalier
