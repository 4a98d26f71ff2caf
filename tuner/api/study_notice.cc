#include "tuner/api/study_notice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/launchers.h"

namespace espalier {

namespace {

// A study's policy is followed by `tuner run` alone.
std::string PolicyNotice(const Study& study, const View& view) {
  const std::optional<PluginSpec> own = view.core.PoolPolicy();
  if (!own || !study.spec.names_policy || study.spec.policy == *own) return "";
  return absl::StrCat("policy ", TextOf(study.spec.policy), " of the study is not followed: this ",
                      "pool is divided by ", TextOf(*own),
                      " (tuner pool --policy changes that for all of its studies)");
}

// The most slots that one trial could have if it were alone in the pool.
int LargestTrial(const StudySpec& spec, const View& view) {
  std::map<std::string, int> by_gpu_type;
  for (const NodeView& node : view.core.Nodes()) {
    const int most =
        spec.slots_per_node > 0 ? std::min(spec.slots_per_node, node.slots) : node.slots;
    by_gpu_type[node.gpu_type] += most;
  }
  int largest = 0;
  for (const auto& [type, slots] : by_gpu_type) largest = std::max(largest, slots);
  return largest;
}

// An engine may still start machines that suffice.
std::string RoomNotice(const Study& study, const View& view) {
  if (!view.users_add_machines || study.state != StudyState::kRunning || study.spec.by_clients()) {
    return "";
  }
  const int slots = view.core.SlotsTotal();
  if (slots == 0) {
    return "no machine is in the pool: have one join it by tuner agent --join HOST:PORT, as the "
           "service prints it when it starts";
  }
  const int largest = LargestTrial(study.spec, view);
  if (study.spec.min_slots <= largest) return "";
  if (largest < slots) {
    const int on_one = study.spec.slots_per_node;
    return absl::StrCat("each trial needs ", study.spec.min_slots,
                        " slots, and the largest that the pool could ", "hold has ", largest,
                        on_one > 0 ? absl::StrCat(" (at most ", on_one, " on one machine)")
                                   : " (on GPUs of one type)",
                        ": have more machines join it, or lower \"slots\" of the study",
                        on_one > 0 ? " or raise its \"slots_per_node\"" : "");
  }
  return absl::StrCat("each trial needs ", study.spec.min_slots, " slots, and the pool has ", slots,
                      ": have more machines join it, or lower \"slots\" of the study");
}

std::string TurnNotice(const Study& study, const View& view) {
  const std::optional<StudyWait> wait = view.core.WaitOf(study.id);
  if (!wait) return "";
  const std::string slots = absl::StrCat(wait->slots, wait->slots == 1 ? " slot" : " slots");
  if (!wait->its_turn) {
    return absl::StrCat("its next trial waits for its turn: it needs ", slots,
                        ", and other studies have had less of the pool than their share");
  }
  std::string text =
      absl::StrCat("its next trial waits for ", slots, wait->slots > 1 ? " together: " : ": ",
                   wait->free, wait->free == 1 ? " is" : " are",
                   " free and kept for it so far, the rest come as trials of other studies end");
  if (wait->about_s) absl::StrAppend(&text, ", in about ", std::lround(*wait->about_s), " s");
  return text;
}

// Where no slot of the pool can be used, as its nodes or their agents have found.
std::string SlotsNotice(const Study& study, const View& view) {
  if (study.state != StudyState::kRunning || study.spec.by_clients()) return "";
  std::vector<std::string> reasons;
  for (const NodeView& node : view.core.Nodes()) {
    if (static_cast<int>(node.unusable.size()) < node.slots) return "";
    if (!node.unusable.empty()) {
      reasons.push_back(absl::StrCat(node.name, ": ", node.unusable.begin()->second));
    }
  }
  constexpr std::size_t kMostNamed = 3;
  if (reasons.empty()) return "";
  const std::size_t others = reasons.size() - std::min(reasons.size(), kMostNamed);
  reasons.resize(reasons.size() - others);
  return absl::StrCat("no slot of the pool can be used: ", absl::StrJoin(reasons, "; "),
                      others > 0 ? absl::StrCat("; and ", others, " more") : "");
}

// The most slots that one machine has for a trial of the study.
int MostOnOneMachine(const StudySpec& spec, const View& view) {
  int most = 0;
  for (const NodeView& node : view.core.Nodes()) most = std::max(most, node.slots);
  return spec.slots_per_node > 0 ? std::min(spec.slots_per_node, most) : most;
}

// One process, or a launcher in the command, which is on one machine.
std::string ProgramNotice(const Study& study, const View& view) {
  const StudySpec& spec = study.spec;
  if (spec.min_slots < 2 || spec.by_clients() || !spec.launch.empty()) return "";
  const Launcher* const launcher = LauncherOf(spec.command);
  const bool one_process = HasProvenInelastic(view.core.state(), study);
  const int most = MostOnOneMachine(spec, view);
  if ((launcher != nullptr || one_process) && most > 0 && most < spec.min_slots) {
    return absl::StrCat(
        launcher != nullptr ? "its command is started on one machine"
                            : "its program is not elastic: each trial is one process",
        ", which has ", most, " of its ", spec.min_slots, " slots, and the others stay idle (",
        launcher != nullptr ? absl::StrCat("let a \"launch\" start the ranks in place of \"",
                                           std::string(launcher->name), "\" in the command")
                            : "give the study a \"launch\" such as \"torchrun\"",
        ", or lower \"slots\" to ", most, ")");
  }
  if (!one_process || launcher != nullptr) return "";
  return absl::StrCat(
      "its program is not elastic: each trial is one process, which has ", spec.min_slots,
      " slots, and what it does not use of them by itself ",
      "stays idle (give the study a \"launch\" such as \"torchrun\", or set \"slots\" to 1)");
}

// By those of its members that run.
std::string PopulationNotice(const Study& study, const View& view) {
  const TunerState& state = view.core.state();
  const StudySpec& spec = study.spec;
  if (!spec.population.on() || spec.resize_by_restart || study.state != StudyState::kRunning ||
      !HasProvenInelastic(state, study)) {
    return "";
  }
  bool goes_unasked = false;
  for (const TrialId id : state.TallyOf(study).holders()) {
    const Trial& trial = state.trials.at(id);
    if (trial.ranks->saving.asked()) return "";
    goes_unasked = goes_unasked || GoesUnasked(trial);
  }
  if (!goes_unasked) return "";
  return absl::StrCat("members are compared, and none takes over from another: ", kSavesUnasked);
}

std::string OldAgentsNotice(const Study& study, const View& view) {
  if (study.state != StudyState::kRunning) return "";
  const std::vector<std::string> old = view.core.AgentsTooOldFor(study.spec);
  if (old.empty()) return "";
  return absl::StrCat("its trials need several machines, and wait until the agents of all can ",
                      "start a part of their ranks: upgrade the agent on ",
                      absl::StrJoin(old, ", "));
}

// Of programs that told so at their end, which those without the library do not.
std::string ParametersNotice(const Study& study, const View& view) {
  std::vector<std::string> unread;
  for (const auto& [name, readers] : view.core.state().TallyOf(study).readers()) {
    if (readers.unread == readers.complete) unread.push_back(absl::StrCat("\"", name, "\""));
  }
  if (unread.empty()) return "";
  const bool one = unread.size() == 1;
  return absl::StrCat("no complete trial has asked for the parameter", one ? " " : "s ",
                      absl::StrJoin(unread, ", "),
                      ": look whether the program and the search space ", "give ",
                      one ? "it" : "them", " the same name");
}

// Only trials that hold slots could grow.
std::string GrowthNotice(const Study& study, const View& view) {
  const TunerState& state = view.core.state();
  std::string first;
  int others = -1;
  for (const TrialId id : state.TallyOf(study).holders()) {
    const Trial& trial = state.trials.at(id);
    const std::string why = WhyNotGrowing(trial);
    if (why.empty() || Ended(trial.state)) continue;
    if (++others == 0) first = absl::StrCat("trial ", trial.number, " ", why);
  }
  if (others <= 0) return first;
  return absl::StrCat(first, "; it is so with ", others,
                      others == 1 ? " other trial" : " other trials");
}

}  // namespace

std::vector<std::string> StudyNotices(const Study& study, const View& view) {
  std::vector<std::string> notices;
  for (const auto& notice : {PolicyNotice, RoomNotice, TurnNotice, SlotsNotice, ProgramNotice,
                             PopulationNotice, OldAgentsNotice, ParametersNotice, GrowthNotice}) {
    if (std::string text = notice(study, view); !text.empty()) notices.push_back(std::move(text));
  }
  return notices;
}

std::string StudyNotice(const Study& study, const View& view) {
  return absl::StrJoin(StudyNotices(study, view), "; ");
}

}  // namespace espalier
