#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tuner/core/state/kept_token.h"
#include "tuner/core/state/study.h"
#include "tuner/core/state/trial_draw.h"
#include "tuner/core/state/trial_tally.h"

namespace espalier {

// The one vocabulary of change. The core emits these, storage commits them, a restart and the
// simulator replay them; TunerState::Apply is the only code that gives them a meaning.

struct StudyCreated {
  StudyId id;
  StudySpec spec;
  Time at;
};
struct StudyStateChanged {
  StudyId id;
  StudyState state;
  std::string reason;
  Time at;
};
// A stopped study is resumed with these limits.
struct StudyLimitsChanged {
  StudyId id;
  std::int64_t max_trials;
  double time_limit_s;
};
// Sets the study's clock. The core emits it after a restart, so that down time does not count.
struct StudyClockSet {
  StudyId id;
  double active_s;
  Time running_since;
};
// The study and its trials are gone; ids up to these are not used again.
struct StudyDeleted {
  StudyId id;
  StudyId last_study;
  TrialId last_trial;
};
struct StudyRenamed {
  StudyId id;
  std::string name;
};
struct StudyAttributeSet {
  StudyId id;
  bool system;  // else the user's
  std::string key;
  std::string value;
};
struct SuggestionAdded {
  StudyId id;
  Suggestion suggestion;
};
struct TrialCreated {
  TrialId id;
  StudyId study;
  std::int64_t number;
  Parameters parameters;
  Time at;
};
// What the study's sampler was told when it suggested the parameters of a trial.
struct TrialDrawn {
  TrialId id;
  TrialDraw draw;
};
// The trial begins with another one's checkpoint: first without the checkpoint, then with it.
struct TrialCloned {
  TrialId id;
  Lineage lineage;
};
struct TrialStateChanged {
  TrialId id;
  TrialState state;
  Time at;
  std::string reason{};
  std::optional<double> value{};  // final value, with COMPLETE and (last one) PRUNED
  std::string last_output{};      // with FAIL
  bool cancelled = false;         // with FAIL: see Trial
};
// What the client that runs a trial says of it. A time of zero leaves it as it was.
struct TrialTold {
  TrialId id;
  TrialState state;
  std::vector<double> values;  // final; empty: as they were
  Time started;
  Time ended;
  StateSource source = StateSource::kClient;
};
// The final value that the program of a trial of the pool has told before its end.
struct FinalValueReported {
  TrialId id;
  double value;
};
// `position` is that of an earlier value of the same parameter, or the next.
struct ParameterSuggested {
  TrialId id;
  int position;
  SuggestedValue value;
};
struct TrialAttributeSet {
  TrialId id;
  bool system;  // else the user's
  std::string key;
  std::string value;
};
struct TrialHeld {
  TrialId id;
  bool held;
};
struct TrialEnvironmentSet {
  TrialId id;
  ProcessVariables environment;
};
struct ValueReported {
  TrialId id;
  IntermediateValue value;
  std::map<std::string, double> extra{};  // further figures of the same step
  bool replace = false;                   // the value of that step, if there is one; else it is new
};
// A rank of the trial's program has reported this, whether or not it counts by itself.
struct RankValueTold {
  TrialId id;
  std::int64_t step;
  int rank;
  double value;
};
// Those of steps below `below`.
struct RankValuesForgotten {
  TrialId id;
  std::int64_t below;
};
struct VerdictAgreed {
  TrialId id;
  AgreedVerdict verdict;
  AgreedVerdict saving;
};
// The trial's replica group entered a new generation; generations are never used twice.
struct GenerationAdvanced {
  TrialId id;
  std::int64_t generation;
};
// Closes the open span of slots and, unless `slots` is empty, opens the next.
struct SlotsHeldChanged {
  TrialId id;
  Time at;
  std::vector<Slot> slots;
};
struct ResizeMeasured {
  TrialId id;
  Resize resize;
};
struct FiguresRecorded {
  TrialId id;
  TrainingFigures figures;
};
// The trial's newest checkpoint, which it goes on from.
struct CheckpointRecorded {
  TrialId id;
  std::string path;
  CheckpointLabel label{};
};
// The newest checkpoint of the trial that a node has; Gone: the node has none any more.
struct CheckpointCopySet {
  TrialId id;
  CheckpointCopy copy;
};
struct CheckpointCopyGone {
  TrialId id;
  NodeId node;
};
struct TrialPinned {
  TrialId id;
  int slots;
};
struct TrialRestarted {
  TrialId id;
  int restarts;
};
// Replicas that were to join the trial's group have failed, or (where `failed` is empty) their
// count begins anew.
struct JoinsFailed {
  TrialId id;
  FailedJoins failed;
};
struct DecisionMade {
  StudyId study;
  Decision decision;
};
struct NodeRegistered {
  NodeId id;
  std::string name;
};
// Only of nodes that cost something, may be taken away or are of a template: what is paid for what.
struct NodeTermsTold {
  NodeId id;
  NodeTerms terms;
};
// A node has come, or come back otherwise than it was, or (where `up` is false) is gone.
struct NodeSeen {
  NodeId id;
  bool up = false;
  NodeTerms terms{};  // since when; what it was until it went
  std::string why{};  // it is gone

  friend bool operator==(const NodeSeen&, const NodeSeen&) = default;
};
// The newest ones, of all nodes together; older ones are forgotten, in the database too.
inline constexpr std::size_t kNodeEventsKept = 10'000;
// A user wants the node emptied or, where `drained` is false, used again.
struct NodeDrained {
  NodeId id;
  bool drained;
  Time ends;  // when it must be empty; zero: no such moment
};
// A client has set the pool's policy.
struct PoolPolicySet {
  PluginSpec policy;
};
// A token was added, or the one with this id has changed.
struct TokenKept {
  KeptToken token;
};
// Replica ids below `below` may be in use: a restarted service goes on from there.
struct ReplicaIdsReserved {
  std::int64_t below;
};

using Change =
    std::variant<StudyCreated, StudyStateChanged, StudyLimitsChanged, StudyClockSet, StudyDeleted,
                 StudyRenamed, StudyAttributeSet, SuggestionAdded, TrialCreated, TrialDrawn,
                 TrialCloned, TrialStateChanged, TrialTold, ParameterSuggested, TrialAttributeSet,
                 TrialHeld, TrialEnvironmentSet, FinalValueReported, ValueReported, RankValueTold,
                 RankValuesForgotten, VerdictAgreed, GenerationAdvanced, SlotsHeldChanged,
                 ResizeMeasured, FiguresRecorded, CheckpointRecorded, CheckpointCopySet,
                 CheckpointCopyGone, TrialPinned, TrialRestarted, JoinsFailed, DecisionMade,
                 NodeRegistered, NodeTermsTold, NodeSeen, NodeDrained, PoolPolicySet, TokenKept,
                 ReplicaIdsReserved>;

// For parts that keep something beside the state: the trial that the change ends, and the study
// that it ends or deletes, with all its trials. None: it ends nothing. A study that has ended may
// be resumed.
std::optional<TrialId> TrialEndedBy(const Change& change);
std::optional<StudyId> StudyEndedBy(const Change& change);

// Trials of deleted studies. They are out of sight at once, and their memory is given back a slice
// at a time, because freeing 100,000 of them at once would block the loop. A copy has none.
class DroppedTrials {
 public:
  using Trials = std::map<TrialId, Trial>;

  DroppedTrials() = default;
  DroppedTrials(const DroppedTrials&) {}
  DroppedTrials& operator=(const DroppedTrials&) { return *this; }
  DroppedTrials(DroppedTrials&&) = default;
  DroppedTrials& operator=(DroppedTrials&&) = default;

  void Take(Trials::node_type trial) { trials_.push_back(std::move(trial)); }

  // True: some are left.
  bool Free(std::size_t most) {
    trials_.resize(trials_.size() - std::min(most, trials_.size()));
    if (trials_.empty()) trials_.shrink_to_fit();
    return !trials_.empty();
  }

 private:
  std::vector<Trials::node_type> trials_;
};

// Everything durable. It is a value, which can be copied and into which changes can be replayed.
struct TunerState {
  std::map<StudyId, Study> studies;
  std::map<TrialId, Trial> trials;
  std::map<NodeId, std::string> nodes;  // every node ever seen, by name
  TermsOfNodes node_terms;              // in the order in which they were told
  std::deque<NodeSeen> node_events;     // in the order in which they happened, kNodeEventsKept
  std::map<NodeId, Time> drained;       // by a user, and when they must be empty; zero: whenever
  std::optional<PluginSpec> policy;     // of the pool; none: none has been set
  std::map<std::string, KeptToken> tokens;  // by id
  std::int64_t replica_ids_below = 1;
  // Replicas with lower ids were started before the database was restored from a backup: what they
  // show and say is of a time that is lost.
  std::int64_t replica_ids_from = 1;
  // The highest ones ever given, deleted ones included: ids are never used twice.
  StudyId last_study;
  TrialId last_trial;
  std::map<std::string, StudyId, std::less<>> study_ids;  // by name, of all studies
  std::map<StudyId, TrialTally> tallies;                  // of all studies; it follows from trials
  DroppedTrials dropped;

  // Aborts on a change that does not fit the state: those come from a broken core or database.
  void Apply(const Change& change);

  const Study* FindStudy(std::string_view name) const;
  const TrialTally& TallyOf(const Study& study) const;
  // Makes the tallies anew, by a walk over all trials: for a state that was not made by changes.
  void Recount();

  // Calls see(trial) for each trial of the study, by number. For a large study this takes a tenth
  // of what looking up each of them takes: mostly they lie side by side.
  template <typename See>
  void ForEachTrial(const Study& study, See see) const {
    auto at = trials.end();
    for (const TrialId id : study.trials) {
      if (at != trials.end()) ++at;
      if (at == trials.end() || at->first != id) at = trials.find(id);
      see(at->second);
    }
  }
};

}  // namespace espalier
