// Routes of the HTTP endpoint: what pages show (tuner/web/view).

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/shortened.h"
#include "tuner/server/http/entity_tag.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/web/view/views.h"

namespace espalier {

namespace {

// Who asks for what, and what has changed so far.
struct ViewCall {
  const HttpCall& http;
  const RevisionLog* log;
};

view::Source SourceOf(const ViewCall& call) {
  return {.tuner = call.http.tuner, .role = call.http.role, .log = call.log};
}

HttpAnswer JsonAnswer(absl::StatusOr<std::string> json) {
  HttpAnswer answer{json.status(), ""};
  if (json.ok()) answer.body = *std::move(json);
  return answer;
}

// The whole number of the query, where it is given.
absl::Status ReadCount(const HttpCall& call, const char* key, std::int64_t least, std::int64_t most,
                       std::int64_t& to) {
  const auto given = call.query.find(key);
  if (given == call.query.end()) return absl::OkStatus();
  std::int64_t number = 0;
  if (absl::SimpleAtoi(given->second, &number) && number >= least && number <= most) {
    to = number;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      key, " \"", given->second, "\": needs a whole number from ", least,
      most == std::numeric_limits<std::int64_t>::max() ? " on" : absl::StrCat(" to ", most)));
}

absl::Status ReadWidth(const HttpCall& call, std::int64_t most, int& to) {
  std::int64_t width = to;
  ESPALIER_RETURN_IF_ERROR(ReadCount(call, "width", 1, most, width));
  to = static_cast<int>(width);
  return absl::OkStatus();
}

// The end of a window, where it is given.
absl::Status ReadEnd(const HttpCall& call, const char* key, std::optional<double>& to) {
  const auto given = call.query.find(key);
  if (given == call.query.end()) return absl::OkStatus();
  double number = 0;
  if (!absl::SimpleAtod(given->second, &number) || !std::isfinite(number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " \"", given->second, "\": needs a number"));
  }
  to = number;
  return absl::OkStatus();
}

// The id of a study or a trial, where it is given.
template <typename Id>
absl::Status ReadId(const HttpCall& call, const char* key, std::optional<Id>& to) {
  if (!call.query.contains(key)) return absl::OkStatus();
  std::int64_t id = 0;
  ESPALIER_RETURN_IF_ERROR(ReadCount(call, key, 0, std::numeric_limits<std::int64_t>::max(), id));
  to = Id(id);
  return absl::OkStatus();
}

std::string QueryText(const HttpCall& call, const char* key) {
  const auto given = call.query.find(key);
  return given == call.query.end() ? "" : given->second;
}

HttpAnswer OverviewAnswer(const ViewCall& call) {
  absl::StatusOr<view::OverviewTexts> texts = TextsOfOverview(SourceOf(call));
  if (!texts.ok()) return ToAnswer(texts.status());
  HttpAnswer answer{absl::OkStatus(), std::move(texts->json)};
  answer.tag = EntityTag(texts->without_time);
  return answer;
}

HttpAnswer StudyAnswer(const ViewCall& call) {
  const absl::StatusOr<StudyId> id = StudyIdOf(call.http);
  return id.ok() ? JsonAnswer(StudyJson(SourceOf(call), *id)) : ToAnswer(id.status());
}

HttpAnswer TrialsAnswer(const ViewCall& call) {
  const absl::StatusOr<StudyId> id = StudyIdOf(call.http);
  if (!id.ok()) return ToAnswer(id.status());
  view::TrialsWanted wanted;
  absl::Status read =
      ReadCount(call.http, "from", 0, std::numeric_limits<std::int64_t>::max(), wanted.from);
  read.Update(ReadCount(call.http, "rows", 1, view::TrialsWanted::kMaxRows, wanted.rows));
  if (call.http.query.contains("changed_since")) {
    read.Update(ReadCount(call.http, "changed_since", 0, std::numeric_limits<std::int64_t>::max(),
                          wanted.changed_since.emplace()));
  }
  return read.ok() ? JsonAnswer(TrialsJson(SourceOf(call), *id, wanted)) : ToAnswer(read);
}

absl::StatusOr<std::vector<TrialId>> ReadTrialIds(const std::string& text) {
  std::vector<TrialId> ids;
  if (text.empty()) return ids;
  for (const auto& part : absl::StrSplit(text, ',')) {
    std::int64_t id = 0;
    if (!absl::SimpleAtoi(part, &id) || id < 0) {
      return absl::InvalidArgumentError(absl::StrCat("trials \"", Shortened(text, kMaxQuoted),
                                                     "\": needs ids of trials, such as 17,18,23"));
    }
    ids.emplace_back(id);
  }
  if (ids.size() > view::CurvesWanted::kMaxTrials) {
    return absl::InvalidArgumentError(absl::StrCat("trials: needs ", view::CurvesWanted::kMaxTrials,
                                                   " at the most, got ", ids.size()));
  }
  return ids;
}

absl::StatusOr<view::CurvesWanted::Axis> ReadAxis(const std::string& text) {
  using Axis = view::CurvesWanted::Axis;
  if (text.empty() || text == "step") return Axis::kStep;
  if (text == "time") return Axis::kTime;
  if (text == "progress") return Axis::kProgress;
  if (text == "slot_seconds") return Axis::kSlotSeconds;
  return absl::InvalidArgumentError(
      absl::StrCat("x \"", text, "\": needs step, time, progress or slot_seconds"));
}

absl::StatusOr<view::CurvesWanted> ReadCurves(const HttpCall& call) {
  using Wanted = view::CurvesWanted;
  Wanted wanted;
  ESPALIER_ASSIGN_OR_RETURN(wanted.trials, ReadTrialIds(QueryText(call, "trials")));
  ESPALIER_RETURN_IF_ERROR(ReadCount(call, "best", 1, Wanted::kMaxTrials, wanted.best));
  if (!wanted.trials.empty() && call.query.contains("best")) {
    return absl::InvalidArgumentError("give \"trials\" or \"best\", not both");
  }
  ESPALIER_ASSIGN_OR_RETURN(wanted.x, ReadAxis(QueryText(call, "x")));
  ESPALIER_RETURN_IF_ERROR(ReadEnd(call, "from", wanted.from));
  ESPALIER_RETURN_IF_ERROR(ReadEnd(call, "to", wanted.to));
  ESPALIER_RETURN_IF_ERROR(ReadWidth(call, Wanted::kMaxWidth, wanted.width));
  wanted.log = Flag(call, "xlog", false);
  ESPALIER_RETURN_IF_ERROR(
      ReadCount(call, "objective", 0, Wanted::kMaxObjective, wanted.objective));
  return wanted;
}

HttpAnswer CurvesAnswer(const ViewCall& call) {
  const absl::StatusOr<StudyId> id = StudyIdOf(call.http);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::StatusOr<view::CurvesWanted> wanted = ReadCurves(call.http);
  return wanted.ok() ? JsonAnswer(CurvesJson(SourceOf(call), *id, *wanted))
                     : ToAnswer(wanted.status());
}

HttpAnswer LanesAnswer(const ViewCall& call) {
  view::LanesWanted wanted;
  absl::Status read = ReadEnd(call.http, "from", wanted.from);
  read.Update(ReadEnd(call.http, "to", wanted.to));
  read.Update(ReadWidth(call.http, view::LanesWanted::kMaxWidth, wanted.width));
  read.Update(ReadId(call.http, "study", wanted.study));
  return read.ok() ? JsonAnswer(LanesJson(SourceOf(call), wanted)) : ToAnswer(read);
}

HttpAnswer DecisionsAnswer(const ViewCall& call) {
  view::DecisionsWanted wanted;
  absl::Status read = ReadId(call.http, "study", wanted.study);
  read.Update(ReadId(call.http, "trial", wanted.trial));
  read.Update(ReadCount(call.http, "limit", 1, view::DecisionsWanted::kMaxRows, wanted.rows));
  wanted.kind = QueryText(call.http, "kind");
  wanted.before = QueryText(call.http, "before");
  return read.ok() ? JsonAnswer(DecisionsJson(SourceOf(call), wanted)) : ToAnswer(read);
}

HttpAnswer TrialAnswer(const ViewCall& call) {
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call.http);
  return id.ok() ? JsonAnswer(TrialJson(SourceOf(call), TrialId(*id))) : ToAnswer(id.status());
}

}  // namespace

std::vector<HttpRoute> ViewRoutes(const RevisionLog* log) {
  std::vector<HttpRoute> routes;
  const auto add = [&](std::string_view path, const char* operation,
                       HttpAnswer (*answer)(const ViewCall&), QueryKeys query) {
    routes.push_back({.method = "GET",
                      .path = path,
                      .operation = operation,
                      .answer =
                          [log, answer](const HttpCall& call) {
                            return answer({call, log});
                          },
                      .query = std::move(query)});
  };
  add("/api/view/overview", "ViewOverview", OverviewAnswer, {});
  add("/api/view/studies/{study_id}", "ViewStudy", StudyAnswer, {});
  add("/api/view/studies/{study_id}/trials", "ViewTrials", TrialsAnswer,
      {"from", "rows", "changed_since"});
  add("/api/view/studies/{study_id}/curves", "ViewCurves", CurvesAnswer,
      {"trials", "best", "x", "from", "to", "width", "xlog", "objective"});
  add("/api/view/lanes", "ViewLanes", LanesAnswer, {"from", "to", "width", "study"});
  add("/api/view/decisions", "ViewDecisions", DecisionsAnswer,
      {"study", "trial", "kind", "before", "limit"});
  add("/api/view/trials/{trial_id}", "ViewTrial", TrialAnswer, {});
  return routes;
}

}  // namespace espalier
