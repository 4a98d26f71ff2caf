#include "tuner/core/study.h"

namespace espalier {

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
