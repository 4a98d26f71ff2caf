#include "tuner/api/trial_output.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/protocol.h"
#include "tuner/api/operations.h"
#include "tuner/core/state/refusals.h"

namespace espalier::api {

namespace {

// Where a trial has run, copied from the core.
struct Places {
  struct Place {
    NodeId node;
    std::string name;
    std::string folder;  // empty: the node's agent has not been here since the service started
  };
  TrialName trial;
  std::vector<Place> places;
  bool one_at_a_time;  // replicas, each of which has a log
};

absl::StatusOr<Places> PlacesOf(TrialId id, const View& view) {
  const TunerState& state = view.core.state();
  const auto trial = state.trials.find(id);
  if (trial == state.trials.end()) return NoTrial(id);
  const Study& study = state.studies.at(trial->second.study);
  if (study.spec.by_clients()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial->second.number, " of study \"", study.spec.name,
        "\" is run by its client, who has what it prints: the pool's own trials are kept here"));
  }
  Places out{{study.spec.name, IdentityOf(study), trial->second.number}, {}, true};
  std::set<NodeId> seen;
  for (const SlotSpan& span : trial->second.spans) {
    // What a launcher starts on a node has one log for each rank.
    if (study.spec.launch.empty() && span.slots.size() > 1) out.one_at_a_time = false;
    for (const Slot& slot : span.slots) {
      const auto node = state.nodes.find(slot.node);
      if (node == state.nodes.end() || !seen.insert(slot.node).second) continue;
      const auto folder = view.folders.find(node->second);
      out.places.push_back(
          {slot.node, node->second, folder == view.folders.end() ? "" : folder->second});
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<OutputText> ReadTrialOutput(Tuner& tuner, const v1::TrialOutputRequest& request) {
  const std::int64_t most = request.max_bytes() == 0 ? kMaxTrialOutput_bytes : request.max_bytes();
  if (most < 1 || most > kMaxTrialOutput_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("max_bytes ", most, ": needs 1 to ",
                                                   kMaxTrialOutput_bytes, ", or 0 for the most"));
  }
  if (request.rank() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.rank(), ": needs the number of a rank, from 0"));
  }
  absl::StatusOr<Places> trial;
  ESPALIER_RETURN_IF_ERROR(
      tuner.Read([&](const View& view) { trial = PlacesOf(TrialId(request.trial_id()), view); }));
  if (!trial.ok()) return trial.status();
  if (trial->places.empty()) {
    return absl::NotFoundError(
        absl::StrCat("trial ", trial->trial.number, " has not started: it has no output yet"));
  }
  std::string text;
  std::string missing;
  for (const Places::Place& place : trial->places) {
    const auto part =
        tuner.ReadOutput(place.node, trial->trial, {.max_bytes = most, .rank = request.rank()});
    if (part.ok()) {
      // A node that has other ranks has nothing of this one.
      if (part->empty()) continue;
      if (trial->places.size() > 1) absl::StrAppend(&text, "==> node ", place.name, " <==\n");
      text += *part;
      continue;
    }
    absl::StrAppend(&missing, missing.empty() ? "" : "; ", "on node ", place.name,
                    place.folder.empty() ? "" : absl::StrCat(", below ", place.folder), " (",
                    std::string(part.status().message()), ")");
  }
  if (text.empty() && !missing.empty()) {
    return absl::NotFoundError(
        absl::StrCat("the output of trial ", trial->trial.number, " is ", missing));
  }
  if (!missing.empty()) absl::StrAppend(&text, "\n(more is ", missing, ")\n");
  if (std::ssize(text) > most) text.erase(0, text.size() - static_cast<std::size_t>(most));
  const bool one_log = trial->places.size() == 1 && trial->one_at_a_time;
  return OutputText{std::move(text), one_log && missing.empty()};
}

absl::StatusOr<v1::TrialOutput> GetTrialOutput(Tuner& tuner,
                                               const v1::TrialOutputRequest& request) {
  ESPALIER_ASSIGN_OR_RETURN(OutputText read, ReadTrialOutput(tuner, request));
  v1::TrialOutput output;
  output.set_text(std::move(read.text));
  return output;
}

}  // namespace espalier::api
