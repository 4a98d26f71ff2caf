#include "tuner/server/access/trial_tokens.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

// One that is told to stop may still tell how it ended.
bool HasProcesses(const View& view, TrialId trial) {
  for (const NodeView& node : view.core.Nodes()) {
    for (const ReplicaView& holder : node.replicas) {
      if (holder.trial == trial) return true;
    }
  }
  return false;
}

}  // namespace

absl::Status CheckTrialToken(const AccessControl& access, const std::string& token,
                             std::int64_t trial, Tuner& tuner) {
  const std::optional<TrialId> own = access.TrialOf(token);
  if (!own) return absl::OkStatus();
  if (own->value != trial) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the token of trial ", own->value, " is good for that trial alone, not for trial ", trial));
  }
  bool lives = false;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const auto& trials = view.core.state().trials;
    const auto found = trials.find(*own);
    lives = found != trials.end() && (!Ended(found->second.state) || HasProcesses(view, *own));
  }));
  if (lives) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("trial ", trial, " has ended, and its token with it"));
}

}  // namespace espalier
