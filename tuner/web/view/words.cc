#include "tuner/web/view/words.h"

namespace espalier::view {

std::string_view WordOf(TrialState state) {
  switch (state) {
    case TrialState::kWaiting:
      return "waiting";
    case TrialState::kRunning:
      return "running";
    case TrialState::kPaused:
      return "paused";
    case TrialState::kComplete:
      return "complete";
    case TrialState::kPruned:
      return "pruned";
    case TrialState::kFail:
      return "failed";
  }
  return "";
}

std::string_view WordOf(StudyState state) {
  switch (state) {
    case StudyState::kRunning:
      return "running";
    case StudyState::kStopped:
      return "stopped";
    case StudyState::kComplete:
      return "complete";
    case StudyState::kFailed:
      return "failed";
  }
  return "";
}

std::string_view WordOf(StudyKind kind) {
  switch (kind) {
    case StudyKind::kTuned:
      return "pool";
    case StudyKind::kQueued:
      return "queue";
    case StudyKind::kByClients:
      return "ask";
  }
  return "";
}

}  // namespace espalier::view
