#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tuner/analysis/best_over_time.h"
#include "tuner/analysis/best_trials.h"
#include "tuner/analysis/importance.h"
#include "tuner/analysis/value_distribution.h"
#include "tuner/core/state/refusals.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

namespace {

constexpr std::size_t kTrialsInLook = 500;  // read between two commits
constexpr std::size_t kMostPoints = 1000;   // of a distribution
constexpr std::size_t kMostImprovements = 200;

// The study as it is needed here: no answer tells of attributes or reports.
absl::StatusOr<StudyCopy> CopyOfStudy(Tuner& tuner, StudyId id) {
  StudyCopier copier(std::numeric_limits<std::int64_t>::max());
  absl::Status status = absl::OkStatus();
  bool done = false;
  while (!done && status.ok()) {
    ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
      const TunerState& state = view.core.state();
      const auto study = state.studies.find(id);
      if (study == state.studies.end()) {
        status = NoStudy(id);
        return;
      }
      done = copier.GoOn(state, study->second, kTrialsInLook);
    }));
  }
  if (!status.ok()) return status;
  return copier.Take();
}

// What `put` says of each objective, beside its direction.
template <typename Put>
void PutObjectives(JsonText& json, const StudyCopy& study, Put put) {
  const std::vector<Direction>& directions = study.head.spec.directions;
  json.Key("objectives");
  json.Array([&] {
    for (std::size_t objective = 0; objective < directions.size(); ++objective) {
      json.Object([&] {
        json.Member("direction", ToString(directions[objective]));
        put(objective);
      });
    }
  });
}

void PutImportance(JsonText& json, const StudyCopy& study) {
  DrawnParameters parameters(study);
  PutObjectives(json, study, [&](std::size_t objective) {
    json.Key("parameters");
    json.Array(Importances(study, parameters, objective), [&json](const Importance& one) {
      json.Object([&] {
        json.Member("name", one.name);
        json.Member("importance", one.importance);
      });
    });
  });
}

void PutFront(JsonText& json, const StudyCopy& study) {
  json.Key("trials");
  json.Array(BestTrials(study.trials, study.head.spec.directions), [&](std::int64_t number) {
    const TrialCopy& trial = study.trials[static_cast<std::size_t>(number)];
    json.Object([&] {
      json.Member("trial_id", trial.id.value);
      json.Member("trial", number);
      json.Values("values", trial.values);
    });
  });
}

void PutDistribution(JsonText& json, const StudyCopy& study) {
  PutObjectives(json, study, [&](std::size_t objective) {
    const std::vector<ValueShare> points = ValueDistribution(study.trials, objective, kMostPoints);
    json.Key("value");
    json.Array(points, [&json](const ValueShare& point) { json.Value(point.value); });
    json.Key("share");
    json.Array(points, [&json](const ValueShare& point) { json.Value(point.share); });
  });
}

void PutBest(JsonText& json, const StudyCopy& study) {
  PutObjectives(json, study, [&](std::size_t objective) {
    const std::vector<Improvement> best = BestOverTime(
        study.trials, objective, study.head.spec.directions[objective], kMostImprovements);
    json.Key("at");
    json.Array(best, [&json](const Improvement& one) { json.Value(SecondsOf(one.at)); });
    json.Key("trial_id");
    json.Array(best, [&json](const Improvement& one) { json.Value(one.trial.value); });
    json.Key("value");
    json.Array(best, [&json](const Improvement& one) { json.Value(one.value); });
  });
}

std::string AnswerOf(const StudyCopy& study, const Analysis& analysis) {
  const auto complete =
      std::count_if(study.trials.begin(), study.trials.end(),
                    [](const TrialCopy& trial) { return trial.state == TrialState::kComplete; });
  JsonText json;
  json.Object([&] {
    json.Member("version", kVersion);
    json.Member("study_id", study.head.id.value);
    json.Member("what", analysis.name);
    json.Member("complete", complete);
    analysis.put(json, study);
  });
  return json.Take();
}

}  // namespace

std::span<const Analysis> Analyses() {
  static constexpr Analysis kAnalyses[] = {{"importance", PutImportance},
                                           {"pareto", PutFront},
                                           {"edf", PutDistribution},
                                           {"best", PutBest}};
  return kAnalyses;
}

absl::StatusOr<std::string> AnalysisJson(const Source& source, StudyId id,
                                         const Analysis& analysis) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, CopyOfStudy(source.tuner, id));
  return AnswerOf(study, analysis);
}

absl::StatusOr<std::string> AnalysesJson(const Source& source, StudyId id) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, CopyOfStudy(source.tuner, id));
  JsonText json;
  json.Object([&] {
    for (const Analysis& analysis : Analyses()) {
      json.Key(analysis.name);
      json.Raw(AnswerOf(study, analysis));
    }
  });
  return json.Take();
}

}  // namespace espalier::view
