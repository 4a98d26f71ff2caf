// Routes of the HTTP endpoint: what is worked out of a study's trials (tuner/analysis).

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shortened.h"
#include "tuner/analysis/best_over_time.h"
#include "tuner/analysis/best_trials.h"
#include "tuner/analysis/importance.h"
#include "tuner/analysis/value_distribution.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {

namespace {

using AnalysisJson = nlohmann::ordered_json;

constexpr int kAnalysisVersion = 1;
constexpr std::size_t kTrialsInLook = 500;  // read between two commits
constexpr double kAnalysisKept_s = 10;      // before what trials have changed is worked out again
constexpr std::size_t kMostAnalysesKept = 64;
constexpr std::size_t kMostPoints = 1000;  // of a distribution
constexpr std::size_t kMostImprovements = 200;

AnalysisJson FiniteOrNull(double value) {
  return std::isfinite(value) ? AnalysisJson(value) : AnalysisJson(nullptr);
}

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
        status = absl::NotFoundError(absl::StrCat("study ", id.value, " is not found"));
        return;
      }
      done = copier.GoOn(state, study->second, kTrialsInLook);
    }));
  }
  if (!status.ok()) return status;
  return copier.Take();
}

// What `of` says of each objective, beside its direction.
template <typename Of>
AnalysisJson Objectives(const StudyCopy& study, Of of) {
  AnalysisJson json = AnalysisJson::array();
  const std::vector<Direction>& directions = study.head.spec.directions;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    AnalysisJson one = {{"direction", ToString(directions[i])}};
    one.update(of(i));
    json.push_back(std::move(one));
  }
  return json;
}

AnalysisJson ImportanceJson(const StudyCopy& study) {
  DrawnParameters parameters(study);
  return Objectives(study, [&](std::size_t objective) {
    AnalysisJson json = {{"parameters", AnalysisJson::array()}};
    for (const Importance& one : Importances(study, parameters, objective)) {
      json["parameters"].push_back(
          {{"name", one.name}, {"importance", FiniteOrNull(one.importance)}});
    }
    return json;
  });
}

AnalysisJson DistributionJson(const StudyCopy& study) {
  return Objectives(study, [&](std::size_t objective) {
    AnalysisJson json = {{"value", AnalysisJson::array()}, {"share", AnalysisJson::array()}};
    for (const ValueShare& point : ValueDistribution(study.trials, objective, kMostPoints)) {
      json["value"].push_back(point.value);
      json["share"].push_back(point.share);
    }
    return json;
  });
}

AnalysisJson BestJson(const StudyCopy& study) {
  return Objectives(study, [&](std::size_t objective) {
    AnalysisJson json = {{"at", AnalysisJson::array()},
                         {"trial_id", AnalysisJson::array()},
                         {"value", AnalysisJson::array()}};
    for (const Improvement& one : BestOverTime(
             study.trials, objective, study.head.spec.directions[objective], kMostImprovements)) {
      json["at"].push_back(SecondsBetween(Time{}, one.at));
      json["trial_id"].push_back(one.trial.value);
      json["value"].push_back(one.value);
    }
    return json;
  });
}

AnalysisJson FrontJson(const StudyCopy& study) {
  AnalysisJson json = AnalysisJson::array();
  for (const std::int64_t number : BestTrials(study.trials, study.head.spec.directions)) {
    const TrialCopy& trial = study.trials[static_cast<std::size_t>(number)];
    AnalysisJson values = AnalysisJson::array();
    for (const double value : trial.values) values.push_back(FiniteOrNull(value));
    json.push_back({{"trial_id", trial.id.value}, {"trial", number}, {"values", values}});
  }
  return json;
}

struct Analysis {
  const char* what;
  const char* key;  // of the answer
  AnalysisJson (*make)(const StudyCopy&);
};
constexpr Analysis kAnalyses[] = {{"importance", "objectives", ImportanceJson},
                                  {"pareto", "trials", FrontJson},
                                  {"edf", "objectives", DistributionJson},
                                  {"best", "objectives", BestJson}};

absl::StatusOr<const Analysis*> AnalysisNamed(const HttpCall& call) {
  const auto given = call.query.find("what");
  const std::string what = given == call.query.end() ? "" : given->second;
  std::string known;
  for (const Analysis& row : kAnalyses) {
    if (what == row.what) return &row;
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.what);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("what \"", Shortened(what, kMaxQuoted), "\": needs one of ", known));
}

std::string AnswerOf(const StudyCopy& study, const Analysis& analysis) {
  const auto complete =
      std::count_if(study.trials.begin(), study.trials.end(),
                    [](const TrialCopy& trial) { return trial.state == TrialState::kComplete; });
  const AnalysisJson json = {{"version", kAnalysisVersion},
                             {"study_id", study.head.id.value},
                             {"what", analysis.what},
                             {"complete", complete},
                             {analysis.key, analysis.make(study)}};
  return json.dump(-1, ' ', false, AnalysisJson::error_handler_t::replace);
}

// KeptAnalyses, as long as they may be given again. One is made at a time, so that many pages do
// not take all processors.
class KeptAnalyses {
 public:
  absl::StatusOr<std::string> Get(Tuner& tuner, StudyId id, const Analysis& analysis) {
    const std::lock_guard lock(mutex_);
    absl::StatusOr<std::int64_t> complete = absl::UnknownError("not read");
    ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) { complete = Complete(view, id); }));
    if (!complete.ok()) return complete.status();
    const auto found = kept_.find({id, analysis.what});
    if (found != kept_.end()) {
      const Kept& kept = found->second;
      // Nothing but complete trials is told of, and they stay as they are.
      const bool same = kept.complete == *complete;
      if (same || SecondsBetween(kept.made, Now()) < kAnalysisKept_s) return kept.text;
    }
    ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, CopyOfStudy(tuner, id));
    while (kept_.size() >= kMostAnalysesKept) kept_.erase(kept_.begin());
    Kept& kept = kept_[{id, analysis.what}];
    kept = {.text = AnswerOf(study, analysis), .complete = *complete, .made = Now()};
    return kept.text;
  }

 private:
  struct Kept {
    std::string text;
    std::int64_t complete = 0;  // trials
    Time made;
  };

  static absl::StatusOr<std::int64_t> Complete(const View& view, StudyId id) {
    const TunerState& state = view.core.state();
    const auto study = state.studies.find(id);
    if (study == state.studies.end()) {
      return absl::NotFoundError(absl::StrCat("study ", id.value, " is not found"));
    }
    return state.TallyOf(study->second).count(TrialState::kComplete);
  }

  std::mutex mutex_;  // guards what follows
  std::map<std::pair<StudyId, std::string>, Kept> kept_;
};

HttpAnswer AnalysisAnswer(KeptAnalyses& answers, const HttpCall& call) {
  const absl::StatusOr<StudyId> id = StudyIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::StatusOr<const Analysis*> analysis = AnalysisNamed(call);
  if (!analysis.ok()) return ToAnswer(analysis.status());
  const absl::StatusOr<std::string> json = answers.Get(call.tuner, *id, **analysis);
  return json.ok() ? HttpAnswer{absl::OkStatus(), *json} : ToAnswer(json.status());
}

}  // namespace

std::vector<HttpRoute> AnalysisRoutes() {
  const auto answers = std::make_shared<KeptAnalyses>();
  return {{.method = "GET",
           .path = "/api/view/studies/{study_id}/analysis",
           .operation = "ViewAnalysis",
           .answer = [answers](const HttpCall& call) { return AnalysisAnswer(*answers, call); },
           .query = QueryKeys{"what"}}};
}

}  // namespace espalier
