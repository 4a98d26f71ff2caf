#include "tuner/api/trial_command.h"

#include "base/json/command_words.h"
#include "base/trial_folder.h"
#include "tuner/core/state/event.h"

namespace espalier {

namespace {

constexpr std::uint64_t kSeeds = std::uint64_t{1} << 31;

// On the node that held its slots last; empty: it is not known.
std::string FolderOf(const Trial& trial, const Study& study, const View& view) {
  if (trial.spans.empty() || trial.spans.back().slots.empty()) return "";
  const auto& nodes = view.core.state().nodes;
  const auto node = nodes.find(trial.spans.back().slots.front().node);
  if (node == nodes.end()) return "";
  const auto folder = view.folders.find(node->second);
  if (folder == view.folders.end()) return "";
  return TrialFolder(folder->second, study.spec.name, trial.number);
}

}  // namespace

std::int64_t SeedOf(const Trial& trial, const Study& study) {
  // A clone goes on in the order of samples that its parent was in the midst of.
  const std::int64_t number = trial.lineage->cloned() ? trial.lineage->founder : trial.number;
  return static_cast<std::int64_t>((study.spec.seed + static_cast<std::uint64_t>(number)) % kSeeds);
}

std::string ParametersJsonOf(const Trial& trial, const Study& study) {
  const auto& attributes = trial.attributes.system;
  const auto verbatim = attributes.find(kTrialParameters);
  return verbatim == attributes.end() ? study.spec.space.NestedJson(trial.parameters)
                                      : verbatim->second;
}

std::vector<std::string> CommandOf(const Trial& trial, const Study& study, const View& view) {
  if (trial.started == Time{} || study.spec.by_clients()) return {};
  const std::string parameters = ParametersJsonOf(trial, study);
  return FillCommand(study.spec.command, {.parameters_json = parameters,
                                          .study = study.spec.name,
                                          .number = trial.number,
                                          .seed = SeedOf(trial, study),
                                          .folder = FolderOf(trial, study, view),
                                          .checkpoints = {}})
      .value_or(std::vector<std::string>());
}

}  // namespace espalier
