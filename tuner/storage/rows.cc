#include "tuner/storage/rows.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json/parse_json.h"

namespace espalier {

namespace {

constexpr StudyState kStudyStates[] = {StudyState::kRunning, StudyState::kStopped,
                                       StudyState::kComplete, StudyState::kFailed};
constexpr TrialState kTrialStates[] = {TrialState::kWaiting, TrialState::kRunning,
                                       TrialState::kPaused,  TrialState::kComplete,
                                       TrialState::kPruned,  TrialState::kFail};
constexpr DecisionKind kDecisionKinds[] = {
    DecisionKind::kStart,  DecisionKind::kGrow,  DecisionKind::kShrink, DecisionKind::kMove,
    DecisionKind::kPrune,  DecisionKind::kPause, DecisionKind::kResume, DecisionKind::kRestart,
    DecisionKind::kFinish, DecisionKind::kFail,  DecisionKind::kPool,   DecisionKind::kStudy};

template <typename Enum, std::size_t kCount>
absl::StatusOr<Enum> FromText(const Enum (&values)[kCount], std::string_view what,
                              std::string_view text) {
  for (const Enum value : values) {
    if (ToString(value) == text) return value;
  }
  return absl::DataLossError(
      absl::StrCat("unknown ", std::string(what), " \"", std::string(text), "\""));
}

}  // namespace

absl::StatusOr<StudyState> StudyStateFromText(std::string_view text) {
  return FromText(kStudyStates, "study state", text);
}
absl::StatusOr<TrialState> TrialStateFromText(std::string_view text) {
  return FromText(kTrialStates, "trial state", text);
}
absl::StatusOr<DecisionKind> DecisionKindFromText(std::string_view text) {
  return FromText(kDecisionKinds, "decision", text);
}

std::string SlotsToText(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    absl::StrAppend(&text, text.empty() ? "" : ",", slot.node.value, ":", slot.index);
  }
  return text;
}

absl::StatusOr<std::vector<Slot>> SlotsFromText(std::string_view text) {
  std::vector<Slot> slots;
  const absl::string_view given(text.data(), text.size());
  for (const absl::string_view part : absl::StrSplit(given, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    Slot slot;
    if (!absl::SimpleAtoi(sides.first, &slot.node.value) ||
        !absl::SimpleAtoi(sides.second, &slot.index)) {
      return absl::DataLossError(absl::StrCat("slots \"", given, "\" are not node:index,..."));
    }
    slots.push_back(slot);
  }
  return slots;
}

std::string FiguresToText(const std::optional<AllocationFigures>& figures) {
  if (!figures) return "";
  nlohmann::json from = nlohmann::json::array();
  for (const SlotsTaken& taken : figures->from) {
    from.push_back(
        {{"trial", taken.trial.value}, {"slots", taken.slots}, {"promise", taken.promise}});
  }
  const nlohmann::json json = {{"promise", figures->promise},
                               {"speedup_before", figures->speedup_before},
                               {"speedup_after", figures->speedup_after},
                               {"gain", figures->gain},
                               {"resize_cost_s", figures->resize_cost_s},
                               {"from", std::move(from)}};
  return json.dump();
}

absl::StatusOr<std::optional<AllocationFigures>> FiguresFromText(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const nlohmann::json json = ParseJson(text);
  try {
    AllocationFigures figures{.promise = json.at("promise").get<float>(),
                              .speedup_before = json.at("speedup_before").get<float>(),
                              .speedup_after = json.at("speedup_after").get<float>(),
                              .gain = json.at("gain").get<float>(),
                              .resize_cost_s = json.at("resize_cost_s").get<float>()};
    for (const nlohmann::json& taken : json.at("from")) {
      figures.from.push_back({.trial = TrialId(taken.at("trial").get<std::int64_t>()),
                              .slots = taken.at("slots").get<int>(),
                              .promise = taken.at("promise").get<float>()});
    }
    return figures;
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError(absl::StrCat("figures \"", text, "\" are not those of a decision"));
  }
}

std::string EnvironmentToText(const ProcessVariables& environment) {
  if (environment.empty()) return "";
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : environment) json[name] = value;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ProcessVariables EnvironmentFromText(const std::string& text) {
  if (text.empty()) return {};
  const auto json = ParseJson(text, kMaxRecordDepth);
  if (!json.is_object()) return {};
  ProcessVariables environment;
  for (const auto& [name, value] : json.items()) {
    if (value.is_string()) environment.emplace_back(name, value.get<std::string>());
  }
  return environment;
}

absl::Status ReadHead(const Statement& row, int first_column, Study& study) {
  int column = first_column;
  study.spec.max_trials = row.Integer(column++);
  study.spec.time_limit_s = row.Double(column++);
  ESPALIER_ASSIGN_OR_RETURN(study.state, StudyStateFromText(row.Text(column++)));
  study.reason = row.Text(column++);
  study.ended = row.Moment(column++);
  study.active_s = row.Double(column++);
  study.running_since = row.Moment(column++);
  return absl::OkStatus();
}

absl::Status ReadHead(const Statement& row, int first_column, Trial& trial) {
  int column = first_column;
  ESPALIER_ASSIGN_OR_RETURN(trial.state, TrialStateFromText(row.Text(column++)));
  trial.value = row.OptionalDouble(column++);
  trial.started = row.Moment(column++);
  trial.ended = row.Moment(column++);
  trial.reason = row.Text(column++);
  trial.last_output = row.Text(column++);
  trial.generation = row.Integer(column++);
  trial.restarts = row.Int(column++);
  trial.pinned_slots = row.Int(column++);
  trial.checkpoint = row.Text(column++);
  CheckpointLabel newest;
  newest.step = row.Integer(column++);
  newest.name = row.Text(column++);
  newest.fingerprint = row.Text(column++);
  newest.at = row.Moment(column++);
  newest.generation = row.Integer(column++);
  trial.newest_checkpoint = std::move(newest);
  trial.held = row.Int(column++) != 0;
  trial.cancelled = row.Int(column++) != 0;
  trial.environment = EnvironmentFromText(row.Text(column++));
  FailedJoins failed;
  failed.in_a_row = row.Int(column++);
  failed.works_at = row.Int(column++);
  failed.reason = row.Text(column++);
  failed.at = row.Moment(column++);
  failed.step = row.Integer(column++);
  trial.failed_joins = std::move(failed);
  RankAnswers ranks;
  ranks.verdict.go_on = row.Integer(column++);
  ranks.verdict.stop = row.Integer(column++);
  ranks.saving.go_on = row.Integer(column++);
  ranks.saving.stop = row.Integer(column++);
  trial.ranks = std::move(ranks);
  return absl::OkStatus();
}

absl::Status WriteHead(Statement& update, const Study& study) {
  return update
      .Bind(study.spec.max_trials, study.spec.time_limit_s, ToString(study.state), study.reason,
            study.ended, study.active_s, study.running_since, study.id)
      .Run();
}

absl::Status WriteHead(Statement& update, const Trial& trial) {
  const CheckpointLabel& newest = *trial.newest_checkpoint;
  const FailedJoins& failed = *trial.failed_joins;
  return update
      .Bind(ToString(trial.state), trial.value, trial.started, trial.ended, trial.reason,
            trial.last_output, trial.generation, trial.restarts, trial.pinned_slots,
            trial.checkpoint, newest.step, newest.name, newest.fingerprint, newest.at,
            newest.generation, trial.held ? 1 : 0, trial.cancelled ? 1 : 0,
            EnvironmentToText(trial.environment), failed.in_a_row, failed.works_at, failed.reason,
            failed.at, failed.step, trial.ranks->verdict.go_on, trial.ranks->verdict.stop,
            trial.ranks->saving.go_on, trial.ranks->saving.stop, trial.id)
      .Run();
}

}  // namespace espalier
