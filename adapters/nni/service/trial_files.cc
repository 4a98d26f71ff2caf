#include "adapters/nni/service/trial_files.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "adapters/nni/service/trial_view.h"

namespace espalier::nni {

TrialPlaces PlacesOf(const Trial& trial, const Study& study, const View& view) {
  TrialPlaces out{study.spec.name, trial.number, {}};
  std::set<NodeId> seen;
  for (const SlotSpan& span : trial.spans) {
    for (const Slot& slot : span.slots) {
      const auto node = view.core.state().nodes.find(slot.node);
      if (node == view.core.state().nodes.end() || !seen.insert(slot.node).second) continue;
      const auto told = view.folders.find(node->second);
      const std::string folder =
          told == view.folders.end() ? "" : FolderOf(trial, study, told->second);
      out.places.push_back({slot.node, node->second, folder});
    }
  }
  return out;
}

absl::StatusOr<std::string> OutputOf(const TrialPlaces& trial, const ReadOutput& read) {
  if (trial.places.empty()) {
    return absl::NotFoundError("the trial has not started: it has no output yet");
  }
  std::string text;
  std::string missing;
  for (const TrialPlaces::Place& place : trial.places) {
    const auto part = read(place.node, trial.study, trial.number, kMaxFileBytes);
    if (part.ok()) {
      if (trial.places.size() > 1) absl::StrAppend(&text, "==> node ", place.node_name, " <==\n");
      text += *part;
      continue;
    }
    absl::StrAppend(&missing, missing.empty() ? "" : "; ", "on node ", place.node_name,
                    place.folder.empty() ? "" : absl::StrCat(" in ", place.folder), " (",
                    std::string(part.status().message()), ")");
  }
  if (text.empty() && !missing.empty()) {
    return absl::NotFoundError(absl::StrCat("the trial's output is ", missing));
  }
  if (!missing.empty()) absl::StrAppend(&text, "\n(more is ", missing, ")\n");
  const auto most = static_cast<std::size_t>(kMaxFileBytes);
  if (text.size() > most) text.erase(0, text.size() - most);
  return text;
}

std::string DecisionsOf(const Trial& trial, const Study& study) {
  std::string text;
  for (const Decision& decision : study.decisions) {
    if (decision.trial_number != trial.number) continue;
    absl::StrAppend(&text,
                    absl::FormatTime("%Y-%m-%d %H:%M:%E3S UTC ",
                                     absl::UnixEpoch() + absl::Seconds(Seconds(decision.at)),
                                     absl::UTCTimeZone()),
                    std::string(ToString(decision.kind)), ", ", decision.from_slots, " to ",
                    decision.to_slots, " slots: ", decision.reason, "\n");
  }
  return text.empty() ? "nothing has been decided for the trial yet\n" : text;
}

}  // namespace espalier::nni
