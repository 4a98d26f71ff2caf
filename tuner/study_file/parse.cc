// JSON to StudySpec.

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/launch_kinds.h"
#include "base/launchers.h"
#include "search_spaces/json_text.h"
#include "tuner/core/state/refusals.h"
#include "tuner/study_file/keys.h"
#include "tuner/study_file/metric_key.h"
#include "tuner/study_file/study_file.h"
#include "tuner/study_file/wording.h"
#include "tuner/study_file/yaml_text.h"

namespace espalier {

namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

std::atomic<std::int64_t> texts_parsed = 0;

absl::Status ReadKeys(const OpenStudyFile& file, std::span<const StudyKey> keys, StudySpec& spec) {
  for (const StudyKey& key : keys) {
    const auto value = file.json.find(key.name);
    if (value == file.json.end()) continue;
    ESPALIER_RETURN_IF_ERROR(key.read(KeyValue(file, key.name, *value), spec));
  }
  spec.SetKindBySampler();
  return absl::OkStatus();
}

// What a command runs, without its arguments, any of which may be the name of a launcher too: the
// program, or for Python the module.
std::vector<std::string> ProgramOf(const std::vector<std::string>& command) {
  if (command.size() > 2 && IsPythonInterpreter(command[0]) && command[1] == "-m") {
    return {command[2]};
  }
  return {command.front()};
}

class StudyReader {
 public:
  explicit StudyReader(OpenStudyFile file) : file_(std::move(file)) {}

  absl::StatusOr<StudySpec> Read();

 private:
  absl::Status CheckKeys() const;
  absl::Status ReadNameOfFile();
  absl::Status CheckRequired() const;
  absl::Status CheckTogether() const;

  const OpenStudyFile file_;
  StudySpec spec_;
};

absl::Status StudyReader::CheckKeys() const {
  if (!file_.json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.label, ": needs a JSON object, got ", Quote(file_.json)));
  }
  std::vector<std::string_view> known;
  for (const StudyKey& key : StudyKeys()) known.push_back(key.name);
  return file_.CheckKeys("", file_.json, known);
}

absl::Status StudyReader::ReadNameOfFile() {
  if (file_.json.contains("name")) return absl::OkStatus();
  const std::filesystem::path path(file_.label);
  if (path.extension() != ".json" && !IsYamlFile(file_.label)) {
    return file_.Bad("name", "is missing; every study needs one");
  }
  const Json stem = path.stem().string();
  if (const absl::Status status = ReadName(KeyValue(file_, "name", stem), spec_); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(status.message()), ", which is the file's name; give the key \"name\""));
  }
  return absl::OkStatus();
}

absl::Status StudyReader::CheckRequired() const {
  if (spec_.by_clients()) {
    for (const std::string_view key : {"command", "launch"}) {
      if (!file_.json.contains(key)) continue;
      return file_.Bad(key,
                       "has no place in a study with \"ask_and_tell\": its clients run the trials");
    }
    return absl::OkStatus();
  }
  if (!file_.json.contains("command")) {
    return file_.Bad("command",
                     R"(is missing; give what a trial runs, as in ["python3", "train.py"])");
  }
  // Jobs have nothing to search.
  if (!file_.json.contains("search_space") && !spec_.queued() && spec_.has_metric) {
    return file_.Bad("search_space",
                     R"(is missing; give parameters, as in {"lr": {"_type": "loguniform", )"
                     R"("_value": [1e-5, 1]}})");
  }
  return absl::OkStatus();
}

absl::Status StudyReader::CheckTogether() const {
  if (spec_.by_clients()) return absl::OkStatus();
  if (const Launcher* const named = LauncherOf(ProgramOf(spec_.command));
      named != nullptr && !spec_.launch.empty()) {
    return file_.Bad(
        "launch",
        absl::StrCat("starts the command once for each rank, and the command "
                     "is a launcher itself: leave \"",
                     std::string(named->name), "\" out of \"command\", or leave out \"launch\""));
  }
  ESPALIER_RETURN_IF_ERROR(CheckPatterns(file_, spec_));
  if (const absl::Status cost = CheckCostLimit(spec_); !cost.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file_.label, ": ", std::string(cost.message())));
  }
  const bool limited = spec_.max_trials > 0 || spec_.time_limit_s > 0 || spec_.cost_limit > 0 ||
                       spec_.target.has_value() || spec_.terminator.name != "none";
  if (!limited && !spec_.queued() && !spec_.space.Cardinality()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_.label, ": the study would never end: its search space is infinite; give \"trials\", ",
        "\"time_limit_s\", \"cost_limit\", \"target\" or \"terminator\""));
  }
  if (spec_.batch_mode == BatchMode::kAdaptive) {
    for (const auto& dimension : spec_.space.dimensions()) {
      if (dimension.name != "batch_size") continue;
      return file_.Bad("batch_mode",
                       "needs \"fixed\" (or nothing) when the search space has \"batch_size\", got "
                       "\"adaptive\": a batch size that changes during a trial cannot be searched");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StudySpec> StudyReader::Read() {
  ESPALIER_RETURN_IF_ERROR(CheckKeys());
  ESPALIER_RETURN_IF_ERROR(ReadNameOfFile());
  spec_.directory = std::filesystem::path(file_.folder).lexically_normal().string();
  ESPALIER_RETURN_IF_ERROR(ReadKeys(file_, StudyKeys(), spec_));
  ESPALIER_RETURN_IF_ERROR(CheckRequired());
  ESPALIER_RETURN_IF_ERROR(CheckTogether());
  ESPALIER_RETURN_IF_ERROR(KeepWording(file_, spec_));
  ESPALIER_RETURN_IF_ERROR(CheckTextSize(spec_.wording.text, file_.label));
  return std::move(spec_);
}

}  // namespace

absl::StatusOr<StudySpec> ParseStudy(std::string_view json, const std::string& label,
                                     const std::string& directory, SpaceFiles files) {
  texts_parsed.fetch_add(1, std::memory_order_relaxed);
  ESPALIER_ASSIGN_OR_RETURN(const Json parsed, search_spaces_json::Parse(label, json));
  return StudyReader(
             {.text = json, .json = parsed, .label = label, .folder = directory, .files = files})
      .Read();
}

absl::StatusOr<StudySpec> ReadForNotes(std::string_view study_json) {
  static constexpr std::array<std::string_view, 5> kNeeded = {"command", "metric", "env",
                                                              "directory", "ask_and_tell"};
  ESPALIER_ASSIGN_OR_RETURN(const Json json, search_spaces_json::Parse("study", study_json));
  std::vector<StudyKey> needed;
  std::copy_if(StudyKeys().begin(), StudyKeys().end(), std::back_inserter(needed),
               [](const StudyKey& key) {
                 return std::find(kNeeded.begin(), kNeeded.end(), key.name) != kNeeded.end();
               });
  StudySpec spec;
  ESPALIER_RETURN_IF_ERROR(
      ReadKeys({.text = study_json, .json = json, .label = "study", .folder = "/"}, needed, spec));
  spec.wording.text = study_json;
  return spec;
}

std::int64_t StudyTextsParsed() { return texts_parsed.load(std::memory_order_relaxed); }

StudySpec FieldsOf(std::string_view text, const Json& json) {
  StudySpec spec;
  const OpenStudyFile file{.text = text, .json = json, .label = "wording", .folder = ""};
  ESPALIER_CHECK(ReadKeys(file, StudyKeys(), spec).ok(),
                 "a study's wording is of a study file that was read");
  return spec;
}

}  // namespace espalier
