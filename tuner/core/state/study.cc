#include "tuner/core/state/study.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace espalier {

TrialTimeouts Merge(const TrialTimeouts& own, const TrialTimeouts& pools) {
  const auto either = [](double of_study, double of_pool) {
    return of_study > 0 ? of_study : of_pool;
  };
  return {.start_s = either(own.start_s, pools.start_s),
          .stall_s = either(own.stall_s, pools.stall_s),
          .pause_s = either(own.pause_s, pools.pause_s),
          .exit_s = either(own.exit_s, pools.exit_s),
          .drain_s = either(own.drain_s, pools.drain_s)};
}

AskedFor AskedForBy(const StudySpec& spec) {
  return {spec.max_trials, spec.time_limit_s, spec.policy.name};
}

std::string IdentityOf(const Study& study) {
  return absl::StrCat(study.id.value, "-", study.created.us);
}

StudySpec DefinitionOf(const Study& study) {
  StudySpec spec = study.spec;
  spec.max_trials = study.asked.max_trials;
  spec.time_limit_s = study.asked.time_limit_s;
  spec.policy.name = study.asked.policy;
  return spec;
}

void Rename(StudySpec& spec, const std::string& name) {
  // A study's text begins with its name.
  const auto beginning = [](const std::string& of) {
    return absl::StrCat("{\"name\":", ToJson(ParameterValue(of)));
  };
  std::string& text = spec.wording.text;
  const std::string before = beginning(spec.name);
  text = text.starts_with(before) ? beginning(name) + text.substr(before.size()) : "";
  spec.wording.fields = 0;
  spec.name = name;
}

std::string AllTrialsHaveEnded(const StudySpec& spec) {
  if (spec.max_trials == 1) return "its trial has ended";
  return absl::StrFormat("all %d trials have ended", spec.max_trials);
}

std::string TextOf(const PluginSpec& plugin) {
  std::string text = plugin.name;
  char separator = ':';
  for (const auto& [name, value] : plugin.options) {
    text += separator;
    absl::StrAppend(&text, name, "=", value.ToText());
    separator = ',';
  }
  return text;
}

std::string_view ToString(TrialState state) {
  switch (state) {
    case TrialState::kWaiting:
      return "WAITING";
    case TrialState::kRunning:
      return "RUNNING";
    case TrialState::kPaused:
      return "PAUSED";
    case TrialState::kComplete:
      return "COMPLETE";
    case TrialState::kPruned:
      return "PRUNED";
    case TrialState::kFail:
      return "FAIL";
  }
  return "?";
}

std::string_view ToString(StudyState state) {
  switch (state) {
    case StudyState::kRunning:
      return "RUNNING";
    case StudyState::kStopped:
      return "STOPPED";
    case StudyState::kComplete:
      return "COMPLETE";
    case StudyState::kFailed:
      return "FAILED";
  }
  return "?";
}

std::string_view ToString(Direction direction) {
  return direction == Direction::kMaximize ? "maximize" : "minimize";
}

std::optional<Direction> DirectionOf(std::string_view word) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    if (word == ToString(direction)) return direction;
  }
  return std::nullopt;
}

std::string_view ToString(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kStart:
      return "start";
    case DecisionKind::kGrow:
      return "grow";
    case DecisionKind::kShrink:
      return "shrink";
    case DecisionKind::kMove:
      return "move";
    case DecisionKind::kPrune:
      return "prune";
    case DecisionKind::kPause:
      return "pause";
    case DecisionKind::kResume:
      return "resume";
    case DecisionKind::kRestart:
      return "restart";
    case DecisionKind::kFinish:
      return "finish";
    case DecisionKind::kFail:
      return "fail";
    case DecisionKind::kPool:
      return "pool";
    case DecisionKind::kStudy:
      return "study";
  }
  return "?";
}

}  // namespace espalier
