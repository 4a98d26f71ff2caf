// Routes of the HTTP endpoint: what is worked out of a study's trials.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shortened.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/web/view/views.h"

namespace espalier {

namespace {

constexpr double kAnalysisKept_s = 10;  // before what trials have changed is worked out again
constexpr std::size_t kMostAnalysesKept = 64;

absl::StatusOr<const view::Analysis*> AnalysisNamed(const HttpCall& call) {
  const auto given = call.query.find("what");
  const std::string what = given == call.query.end() ? "" : given->second;
  std::string known;
  for (const view::Analysis& row : view::Analyses()) {
    if (what == row.name) return &row;
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(row.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("what \"", Shortened(what, kMaxQuoted), "\": needs one of ", known));
}

// Answers, for as long as they may be given again. One is made at a time, so that many pages do
// not take all processors.
class KeptAnalyses {
 public:
  absl::StatusOr<std::string> Get(Tuner& tuner, StudyId id, const view::Analysis& analysis) {
    const std::lock_guard lock(mutex_);
    std::optional<std::int64_t> complete;
    ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) { complete = Complete(view, id); }));
    const view::Source source{.tuner = tuner};
    if (!complete) return view::AnalysisJson(source, id, analysis);  // which says that it is gone
    const auto found = kept_.find({id, analysis.name});
    if (found != kept_.end()) {
      const Kept& kept = found->second;
      // Nothing but complete trials is told of, and they stay as they are.
      const bool same = kept.complete == *complete;
      if (same || SecondsBetween(kept.made, Now()) < kAnalysisKept_s) return kept.text;
    }
    ESPALIER_ASSIGN_OR_RETURN(std::string text, view::AnalysisJson(source, id, analysis));
    while (kept_.size() >= kMostAnalysesKept) kept_.erase(kept_.begin());
    Kept& kept = kept_[{id, analysis.name}];
    kept = {.text = std::move(text), .complete = *complete, .made = Now()};
    return kept.text;
  }

 private:
  struct Kept {
    std::string text;
    std::int64_t complete = 0;  // trials
    Time made;
  };

  static std::optional<std::int64_t> Complete(const View& view, StudyId id) {
    const TunerState& state = view.core.state();
    const auto study = state.studies.find(id);
    if (study == state.studies.end()) return std::nullopt;
    return state.TallyOf(study->second).count(TrialState::kComplete);
  }

  std::mutex mutex_;  // guards what follows
  std::map<std::pair<StudyId, std::string_view>, Kept> kept_;
};

HttpAnswer AnalysisAnswer(KeptAnalyses& answers, const HttpCall& call) {
  const absl::StatusOr<StudyId> id = StudyIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::StatusOr<const view::Analysis*> analysis = AnalysisNamed(call);
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
