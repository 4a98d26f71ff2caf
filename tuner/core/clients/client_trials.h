#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core/clients/request_keys.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/state/step.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/draws.h"
#include "tuner/core/trials/rank_reports.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/suggested_parameters.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Asks of one study that wait for a draw: no study takes all the places that callers have.
inline constexpr std::size_t kMaxAsksOfStudy = 512;

// Trials that clients create, run and end by themselves: those of Optuna's storage, and trials with
// parameters that the tuner draws for clients. Knows which of them wait to be run, how their
// parameters were drawn, and which have not been heard of for a while.
//
// Most of it answers one event of a client: what is refused is the reply's status. One owner.
class ClientTrials {
 public:
  ClientTrials(Turn& turn, const CoreOptions& options, PluginsOfStudies& plugins, Draws& draws,
               RankReports& ranks, Trials& trials)
      : turn_(turn),
        options_(options),
        plugins_(plugins),
        draws_(draws),
        ranks_(ranks),
        trials_(trials) {}

  // Takes any trial of a loaded state. The client that runs one has the full time again after the
  // restart.
  void TakeUp(const Trial& trial);
  void Observe(const Change& change);

  // ---- events
  void On(const CreateTrial& event);
  void On(const AskTrial& event);
  void On(const WithdrawAsk& event);
  void On(const SuggestParameter& event);
  void On(const SetIntermediateValue& event);
  void On(const SetTrialState& event);
  // Notes on trials of the pool are welcome; ended trials keep what they have.
  void On(const SetTrialAttribute& event);
  void On(const SetTrialAttributes& event);
  // Values of any trial, whether its client or the pool runs it, and how it ended.
  void On(const TellValue& event);
  void On(const ReportValue& event);
  void On(const AskVerdict& event);
  void On(const TellEnd& event);
  // Whether the trial should end now, and why. Never says that it should pause. The study's pruner
  // is kept for the next time.
  PruneVerdict Verdict(TrialId id) const;

  // ---- what other events need
  // A draw of the study that was under way has come to an end: answers who waits for it.
  void ServeAsks(StudyId study);
  // A WAITING trial of a study whose clients run its trials: the client that asks next gets it,
  // with these parameters. Asked again with the same key: the same trial.
  void CreateWaiting(const std::string& study, const Parameters& fixed,
                     const Attributes& attributes, const std::string& request_key);
  // The points that are to be tried first, of a study that has just been created, as WAITING
  // trials.
  void EnqueuePoints(const Study& study);
  // The trial, if it has not ended; else null, and the reply says why not.
  const Trial* OpenTrial(TrialId id);
  // The trial, likewise, if its client runs it; the client has been heard of by this.
  const Trial* TrialToTell(TrialId id);
  // The trial, likewise, if it is RUNNING, whether its client or the pool runs it.
  const Trial* RunningTrial(TrialId id);
  // Records a value of a trial that its client runs, in place of one that its step has.
  void SetValue(const Trial& trial, std::int64_t step, double value);
  // A pruned trial without a value ends with the last one that it reported.
  void EndTrial(const Trial& trial, TrialState state, std::vector<double> values);
  // Whether the study's limits allow one more; past one of them the study ends.
  absl::Status MayCreateTrial(const Study& study);
  // Past its time the study ends.
  absl::Status HasTimeLeft(const Study& study);
  // Not OK: the text is no key. Where a trial was made under it before, the reply names that trial.
  absl::Status CheckRequestKey(StudyId study, const char* attribute, const std::string& key);
  // Does nothing with an empty key.
  void KeepRequestKey(TrialId id, const char* attribute, const std::string& key);

  // ---- clients that have fallen silent
  // Ends their trials, and queues them again where they may be.
  void CheckLeases();
  std::optional<Time> NextCheck() const;

 private:
  // Study::suggestions by name, and each by name and distribution.
  struct SuggestionIndex {
    std::map<std::string, int> first;
    std::map<std::pair<std::string, std::string>, int> all;
  };

  TrialId CreateFrom(StudyId study, const TrialTemplate& content);
  void Suggest(const Trial& trial, const Suggestion& suggestion, double value);
  void SetAttributes(TrialId id, const Attributes& attributes);
  void SetAttribute(TrialId id, bool system, const std::string& key, const std::string& value);
  absl::Status CheckKind(const Study& study, const Suggestion& suggestion);
  int IndexOf(const Study& study, const Suggestion& suggestion);
  const Study* StudyToAsk(const std::string& name, const char* key_attribute,
                          const std::string& key);
  absl::Status MayAsk(const Study& study, const Parameters& fixed);
  absl::Status MayRunOneMore(const Study& study) const;
  // Whether a WAITING trial may run now.
  absl::Status MayStart(const Study& study);
  TrialId FirstWaiting(const Study& study) const;
  void NoteWaiting(const Trial& trial);
  Parameters FixedOf(const Trial& trial);
  // False: the answer waits for a draw that is under way.
  bool Answer(const AskTrial& event);
  // nullopt: a draw is under way.
  std::optional<DrawnTrial> Draw(const Study& study, TrialId taken, const Parameters& fixed);
  void AddDrawn(const Trial& trial, const Parameters& parameters);
  // The first value of a step stands, and another one is answered with a note.
  void TakeValue(const Trial& trial, std::int64_t step, double value, bool final);
  // One of several ranks tells it; false: it counts as any other value.
  bool TakeOfRank(const Trial& trial, const TellValue& event);
  void AnswerAfterTheEnd(const Trial& trial, const TellValue& event);
  bool StopsAt(const Trial& trial, std::int64_t step);
  bool SavesAt(const Trial& trial, std::int64_t step);
  void AfterEnd(const Trial& trial);
  void EndIfTargetReached(const Trial& trial, double value);
  void EndIfAllTold(StudyId id);
  void HeardOf(TrialId id);
  void QueueAgain(const Trial& lost);

  Turn& turn_;
  const CoreOptions& options_;
  PluginsOfStudies& plugins_;
  Draws& draws_;
  RankReports& ranks_;
  Trials& trials_;
  std::map<StudyId, SuggestionIndex> suggestions_;
  std::map<StudyId, SuggestedParameters> suggested_;  // of studies whose sampler was asked
  std::map<StudyId, std::set<TrialId>> waiting_;      // WAITING trials
  RequestKeys request_keys_;
  struct WaitingAsk {
    std::int64_t number = 0;
    AskTrial event;
  };
  std::map<StudyId, std::deque<WaitingAsk>> asks_;  // that wait for a draw, in their order
  std::int64_t asks_waited_ = 0;
  std::map<TrialId, Time> heard_of_;  // trials that run, with a lease
  std::optional<Time> leases_checked_;
};

}  // namespace espalier
