#include "tuner/cli/views/promise_record.h"

#include <fmt/format.h>

#include <vector>

#include "tuner/analysis/promise_replay.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

TrialState StateOf(v1::TrialState state) {
  if (state == v1::TRIAL_COMPLETE) return TrialState::kComplete;
  return HasEnded(state) ? TrialState::kPruned : TrialState::kRunning;
}

// What curves are made of.
Trial TrialOf(const v1::Trial& recorded) {
  Trial trial;
  trial.id = TrialId(recorded.number() + 1);
  trial.number = recorded.number();
  trial.state = StateOf(recorded.state());
  trial.created = TimeFromSeconds(recorded.created_at());
  trial.ended = TimeFromSeconds(recorded.ended_at());
  for (const v1::IntermediateValue& value : recorded.values()) {
    trial.values.push_back({.step = value.step(),
                            .value = value.value(),
                            .progress = value.progress(),
                            .at = TimeFromSeconds(value.at()),
                            .batch_size = value.batch_size()});
  }
  return trial;
}

// What became of the promises above one half.
std::string HighPromises(const Reliability& promise) {
  double count = 0, predicted = 0, happened = 0;
  for (const ReliabilityBin& bin : promise.bins) {
    if (bin.low < 0.5 || bin.count == 0) continue;
    count += bin.count;
    predicted += bin.count * bin.predicted;
    happened += bin.count * bin.happened;
  }
  if (count == 0) return "none of them above 50 %";
  return fmt::format(
      "{:.0f} of them above 50 %, of which {:.0f} % came true and {:.0f} % were expected to", count,
      100 * happened / count, 100 * predicted / count);
}

}  // namespace

Reliability PromiseReliability(const v1::StudyDetails& details) {
  if (!HasEnded(details.study().state())) return {};
  const absl::StatusOr<StudySpec> spec =
      ParseStudy(details.study().study_json(), "study", details.study().directory());
  if (!spec.ok()) return {};
  std::vector<Trial> trials;
  for (const v1::Trial& trial : details.trials()) trials.push_back(TrialOf(trial));
  return PromiseReliability(*spec, trials);
}

std::string PromiseLine(const Reliability& promise) {
  if (promise.count == 0) {
    return "promise, replayed: nothing to tell, as the study has not ended or no trial ran to its "
           "end";
  }
  return fmt::format("promise, replayed: {} predictions, {}; calibration error {:.3f}",
                     promise.count, HighPromises(promise), promise.expected_calibration_error);
}

}  // namespace espalier
