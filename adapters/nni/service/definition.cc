#include "adapters/nni/service/definition.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/nni/service/body.h"
#include "adapters/nni/service/names.h"
#include "adapters/nni/service/trial_command.h"
#include "base/json/parse_json.h"
#include "tuner/study_file/study_file.h"
#include "tuner/study_file/words.h"

namespace espalier::nni {

namespace {

constexpr std::int64_t kMaxSlots = 1'000'000;
constexpr std::int64_t kMaxGpus = 10'000;
constexpr double kMaxGrace_s = 86'400;
constexpr int kNeverGivenUp = 1'000'000'000;  // NNI goes on however many trials fail
// A script's first reports say less than the epochs for which the pruner's own default is meant.
constexpr int kFirstVerdict = 4;  // step
// Says nothing of the experiment itself.
constexpr char kResume[] = "resume";

absl::Status CheckAbsolute(std::string_view key, const std::string& path) {
  if (path.empty() || path.front() == '/') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(key), "\": needs an absolute path, got \"", path, "\""));
}

absl::Status CheckVariables(const std::map<std::string, std::string>& variables) {
  if (variables.size() > kMaxVariables) {
    return absl::InvalidArgumentError(absl::StrCat("\"environment\": needs at most ", kMaxVariables,
                                                   " variables, got ", variables.size()));
  }
  for (const auto& [name, value] : variables) {
    if (!IsVariableName(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"environment\": a variable's name is not empty and has no \"=\", got \"", name, "\""));
    }
    if (HasNul(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"environment.", name, "\": needs a text without zero bytes, got one with them"));
    }
  }
  return absl::OkStatus();
}

// The pruner "promise", with the options that the JSON object gives, as an assessor.
absl::StatusOr<PluginSpec> AssessorOf(const std::string& options) {
  PluginSpec pruner{"promise", {{"min_steps", kFirstVerdict}}};
  const nlohmann::json given = ParseJson(options, kMaxRecordDepth);
  for (const auto& [option, value] : given.items()) {
    if (option == "name") continue;
    if (!value.is_number()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"promise_assessor.", option, "\": needs a number, got ", value.dump(-1, ' ', true)));
    }
    pruner.options[option] = value.get<double>();
  }
  return pruner;
}

// The body's own mistakes are told by its Finish; what else may be wrong ReadDefinition looks at.
absl::StatusOr<StudySpec> ReadSpec(std::string_view experiment, Body& body, int gpus_per_trial) {
  StudySpec spec;
  spec.name = StudyName(experiment);
  spec.kind = StudyKind::kQueued;
  spec.sampler = {kQueueSampler, {}};
  body.Needs("command", "the shell command line of a trial, such as \"python3 train.py\"");
  spec.command = TrialCommand(body.Text("command"));
  body.Needs("directory", "the absolute path of the folder in which trials run");
  spec.directory = body.Text("directory");
  spec.metric = "default";
  spec.directions = {body.Flag("maximize", false) ? Direction::kMaximize : Direction::kMinimize};
  spec.min_slots =
      std::max(static_cast<int>(body.Integer("min_slots", 1, kMaxSlots, 1)), gpus_per_trial);
  spec.max_slots = static_cast<int>(body.Integer("max_slots", 0, kMaxSlots, 0));
  if (spec.max_slots > 0) spec.max_slots = std::max(spec.max_slots, gpus_per_trial);
  spec.share = body.Number("priority", kMinShare, kMaxShare, 1);
  spec.batch_mode = body.Flag("adaptive", false) ? BatchMode::kAdaptive : BatchMode::kFixed;
  if (const std::string options = body.Options("promise_assessor"); !options.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(spec.pruner, AssessorOf(options));
  }
  spec.stop_grace_s = body.Number("stop_grace_s", 0, kMaxGrace_s, 5);
  spec.max_consecutive_failures = kNeverGivenUp;
  spec.environment = body.Texts("environment");
  if (gpus_per_trial == 0) spec.environment["CUDA_VISIBLE_DEVICES"] = "";
  return spec;
}

int Gpus(const View& view) {
  std::size_t gpus = 0;
  for (const NodeView& node : view.core.Nodes()) {
    if (const auto of_node = view.gpus.find(node.name); of_node != view.gpus.end()) {
      gpus += of_node->second.size();
    }
  }
  return static_cast<int>(gpus);
}

}  // namespace

absl::StatusOr<Definition> ReadDefinition(std::string_view experiment, std::string_view text) {
  ESPALIER_ASSIGN_OR_RETURN(Body body, Body::Parse(text));
  Definition definition;
  definition.gpus_per_trial = static_cast<int>(body.Integer("gpus_per_trial", 0, kMaxGpus, -1));
  definition.slots_per_gpu = static_cast<int>(body.Integer("slots_per_gpu", 1, kMaxGpus, 0));
  definition.checkpoint_directory = body.Text("checkpoint_directory");
  ESPALIER_ASSIGN_OR_RETURN(definition.study,
                            ReadSpec(experiment, body, definition.gpus_per_trial));
  StudySpec& study = definition.study;
  body.Flag(kResume, false);
  ESPALIER_RETURN_IF_ERROR(body.Finish());
  if (study.command.back().empty()) {
    return absl::InvalidArgumentError("\"command\": is empty: needs what a trial runs");
  }
  if (study.directory.empty()) return absl::InvalidArgumentError("\"directory\": is empty");
  ESPALIER_RETURN_IF_ERROR(CheckAbsolute("directory", study.directory));
  ESPALIER_RETURN_IF_ERROR(CheckAbsolute("checkpoint_directory", definition.checkpoint_directory));
  ESPALIER_RETURN_IF_ERROR(CheckVariables(study.environment));
  if (study.max_slots > 0 && study.max_slots < study.min_slots) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"max_slots\": needs an integer >= min_slots, which is ", study.min_slots,
                     ", got ", study.max_slots));
  }
  study.directory = std::filesystem::path(study.directory).lexically_normal().string();
  ESPALIER_RETURN_IF_ERROR(Validate(study));
  ESPALIER_ASSIGN_OR_RETURN(
      study, WithWording(study, absl::StrCat("experiment ", std::string(experiment))));
  definition.canonical = body.Canonical(kResume);
  return definition;
}

absl::Status CheckPool(const Definition& definition, const View& view) {
  const std::vector<NodeView> nodes = view.core.Nodes();
  if (nodes.empty()) return absl::OkStatus();
  const int slots = view.core.SlotsTotal();
  const int gpus = Gpus(view);
  const std::string pool = absl::StrCat("the pool has ", gpus, " GPUs and ", slots, " slots on ",
                                        nodes.size(), nodes.size() == 1 ? " node" : " nodes");
  if (definition.gpus_per_trial > gpus) {
    return absl::FailedPreconditionError(
        absl::StrCat("a trial needs ", definition.gpus_per_trial, " GPUs, and ", pool,
                     ": lower trialGpuNumber, or add nodes (tuner agent --join)"));
  }
  if (definition.study.min_slots > slots) {
    return absl::FailedPreconditionError(
        absl::StrCat("a trial needs ", definition.study.min_slots, " slots, and ", pool,
                     ": lower the least number of slots, or add nodes (tuner agent --join)"));
  }
  if (definition.slots_per_gpu == 0) return absl::OkStatus();
  for (const NodeView& node : nodes) {
    const auto of_node = view.gpus.find(node.name);
    if (of_node == view.gpus.end() || of_node->second.empty()) continue;
    const int shares = node.slots / static_cast<int>(of_node->second.size());
    if (shares == definition.slots_per_gpu) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "slots per GPU are for the agents to say: node ", node.name, " has ", shares,
        ", the experiment wants ", definition.slots_per_gpu, ": start it with --slots-per-gpu ",
        definition.slots_per_gpu, ", or leave the setting out"));
  }
  return absl::OkStatus();
}

std::string DifferingKeys(std::string_view before, std::string_view now) {
  const auto a = ParseJson(before, kMaxRecordDepth);
  const auto b = ParseJson(now, kMaxRecordDepth);
  std::vector<std::string> keys;
  const auto add = [&keys](const nlohmann::json& from, const nlohmann::json& other) {
    if (!from.is_object()) return;
    for (const auto& [key, value] : from.items()) {
      if (other.is_object() && other.contains(key) && other[key] == value) continue;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  };
  add(a, b);
  add(b, a);
  return absl::StrJoin(keys, ", ");
}

std::string CheckpointFolder(std::string_view canonical, std::string_view trial) {
  const auto body = ParseJson(canonical, kMaxRecordDepth);
  if (!body.is_object() || !body.contains("checkpoint_directory")) return "";
  const std::string folder = body["checkpoint_directory"];
  return folder.empty() ? "" : absl::StrCat(folder, "/", std::string(trial));
}

}  // namespace espalier::nni
