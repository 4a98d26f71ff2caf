// JSON to StudySpec.

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/clock.h"
#include "search_spaces/json_text.h"
#include "tuner/core/promise/promise.h"
#include "tuner/core/state/refusals.h"
#include "tuner/study_file/foreign_keys.h"
#include "tuner/study_file/near_name.h"
#include "tuner/study_file/study_file.h"
#include "tuner/study_file/study_search_space.h"
#include "tuner/study_file/timeout_keys.h"
#include "tuner/study_file/trial_start.h"
#include "tuner/study_file/wording.h"
#include "tuner/study_file/words.h"

namespace espalier {

namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

constexpr std::size_t kMaxNameBytes = 128;         // of a study, metric or plug-in
constexpr std::size_t kMaxWords = 1024;            // of a command
constexpr std::size_t kMaxRemedyBytes = 1024;      // for a needed file that is missing
constexpr std::int64_t kMaxCount = 1'000'000'000;  // trials, steps, failures
constexpr std::int64_t kMaxSlots = 1'000'000;
constexpr double kMaxPrice = 1e12;

std::string Word(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

class StudyReader {
 public:
  StudyReader(std::string_view text, Json json, std::string label, std::string directory,
              SpaceFiles files)
      : text_(text),
        json_(std::move(json)),
        label_(std::move(label)),
        folder_(std::move(directory)),
        files_(files) {}

  absl::StatusOr<StudySpec> Read();
  // The fields of a file that has been read before, which need not be whole.
  StudySpec Fields() {
    ESPALIER_CHECK(ReadFields().ok(), "a study's wording is of a study file that was read");
    return std::move(spec_);
  }

 private:
  struct Key {
    std::string_view name;
    absl::Status (StudyReader::*read)(const Json& value);
  };
  static const std::array<Key, 34> kKeys;
  absl::Status Bad(std::string_view key, std::string_view problem) const {
    return absl::InvalidArgumentError(
        absl::StrCat(label_, ": \"", std::string(key), "\": ", std::string(problem)));
  }
  absl::Status Needs(std::string_view key, std::string_view what, const Json& got) const {
    return Bad(key, absl::StrCat("needs ", std::string(what), ", got ", Quote(got)));
  }
  absl::Status CheckKeys(std::string_view where, const Json& object,
                         std::span<const std::string_view> known) const;
  absl::Status Integer(std::string_view key, const Json& value, std::int64_t low, std::int64_t high,
                       std::int64_t& result) const;
  absl::Status Count(std::string_view key, const Json& value, std::int64_t low, int& result) const;
  absl::Status Number(std::string_view key, const Json& value, double& result) const;
  absl::Status Range(const std::string& key, const char* what, double low, double high,
                     double& result) const;
  absl::Status Text(std::string_view key, const Json& value, std::size_t max_bytes,
                    std::string& result) const;
  absl::Status Plugin(std::string_view key, const Json& value, PluginSpec& result) const;

  absl::Status Name(const Json& value);
  absl::Status Command(const Json& value);
  absl::Status Metric(const Json& value);
  absl::Status Space(const Json& value);
  absl::Status Sampler(const Json& value) { return Plugin("sampler", value, spec_.sampler); }
  absl::Status Pruner(const Json& value) { return Plugin("pruner", value, spec_.pruner); }
  absl::Status Policy(const Json& value) { return Plugin("policy", value, spec_.policy); }
  absl::Status Trials(const Json& value) {
    return Integer("trials", value, 1, kMaxCount, spec_.max_trials);
  }
  absl::Status TimeLimit(const Json& value);
  absl::Status CostLimit(const Json& value) { return Price("cost_limit", value, spec_.cost_limit); }
  absl::Status SlotPrice(const Json& value) {
    return Price("slot_price_per_hour", value, spec_.slot_price_per_hour);
  }
  absl::Status Price(std::string_view key, const Json& value, double& result) const;
  absl::Status Target(const Json& value);
  absl::Status MaxConcurrentTrials(const Json& value) {
    return Integer("max_concurrent_trials", value, 1, kMaxCount, spec_.max_concurrent_trials);
  }
  absl::Status MaxStep(const Json& value) {
    return Integer("max_step", value, 1, kMaxCount, spec_.max_step);
  }
  absl::Status Promised(const Json& value);
  absl::Status Slots(const Json& value);
  absl::Status Share(const Json&) {
    return Range("share", "a number", kMinShare, kMaxShare, spec_.share);
  }
  absl::Status Mode(const Json& value);
  absl::Status Seed(const Json& value);
  absl::Status MaxConsecutiveFailures(const Json& value) {
    return Count("max_consecutive_failures", value, 1, spec_.max_consecutive_failures);
  }
  absl::Status MaxRestarts(const Json& value) {
    return Count("max_restarts", value, 0, spec_.max_restarts);
  }
  absl::Status Stragglers(const Json& value);
  absl::Status StopGrace(const Json&) {
    return Range("stop_grace_s", "seconds", 0, kMaxTime_s, spec_.stop_grace_s);
  }
  absl::Status Timeouts(const Json& value);
  absl::Status Environment(const Json& value);
  absl::Status Preload(const Json& value);
  absl::Status NeededFiles(const Json& value);
  absl::Status Directory(const Json& value);
  absl::Status AskAndTell(const Json& value);
  absl::Status Directions(const Json& value);

  absl::Status ReadName();
  // Whether clients run the trials, as far as the text is read.
  bool ByClients() const { return json_.value("ask_and_tell", Json(false)) == true; }
  absl::Status CheckRequired() const;
  absl::Status CheckTogether() const;
  absl::Status ReadFields();
  void KeepWording();

  const std::string_view text_;
  const Json json_;
  const std::string label_;
  const std::string folder_;
  const SpaceFiles files_;
  StudySpec spec_;
};

// What a study file may say. README.md explains each.
const std::array<StudyReader::Key, 34> StudyReader::kKeys = {{
    {"name", &StudyReader::Name},
    {"command", &StudyReader::Command},
    {"metric", &StudyReader::Metric},
    {"search_space", &StudyReader::Space},
    {"sampler", &StudyReader::Sampler},
    {"pruner", &StudyReader::Pruner},
    {"policy", &StudyReader::Policy},
    {"trials", &StudyReader::Trials},
    {"time_limit_s", &StudyReader::TimeLimit},
    {"cost_limit", &StudyReader::CostLimit},
    {"slot_price_per_hour", &StudyReader::SlotPrice},
    {"target", &StudyReader::Target},
    {"max_concurrent_trials", &StudyReader::MaxConcurrentTrials},
    {"max_step", &StudyReader::MaxStep},
    {"promise", &StudyReader::Promised},
    {"slots", &StudyReader::Slots},
    {"share", &StudyReader::Share},
    {"batch_mode", &StudyReader::Mode},
    {"seed", &StudyReader::Seed},
    {"max_consecutive_failures", &StudyReader::MaxConsecutiveFailures},
    {"max_restarts", &StudyReader::MaxRestarts},
    {"stragglers", &StudyReader::Stragglers},
    {"stop_grace_s", &StudyReader::StopGrace},
    {"start_timeout_s", &StudyReader::Timeouts},
    {"stall_timeout_s", &StudyReader::Timeouts},
    {"pause_timeout_s", &StudyReader::Timeouts},
    {"exit_timeout_s", &StudyReader::Timeouts},
    {"drain_timeout_s", &StudyReader::Timeouts},
    {"env", &StudyReader::Environment},
    {"preload", &StudyReader::Preload},
    {"needs", &StudyReader::NeededFiles},
    {"directory", &StudyReader::Directory},
    {"ask_and_tell", &StudyReader::AskAndTell},
    {"directions", &StudyReader::Directions},
}};

absl::Status StudyReader::CheckKeys(std::string_view where, const Json& object,
                                    std::span<const std::string_view> known) const {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string problem = "unknown key";
    std::string_view meant = where.empty() ? KeyOfForeign(key) : "";
    if (meant.empty()) meant = NearName(key, known);
    if (!meant.empty()) {
      absl::StrAppend(&problem, ", did you mean \"", std::string(meant), "\"?");
    } else {
      absl::StrAppend(&problem, ";");
    }
    absl::StrAppend(&problem, " Known: ", absl::StrJoin(known, ", ", [](auto* out, auto name) {
      out->append(name);
    }));
    return Bad(absl::StrCat(std::string(where), key), problem);
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Integer(std::string_view key, const Json& value, std::int64_t low,
                                  std::int64_t high, std::int64_t& result) const {
  if (!value.is_number_integer()) return Needs(key, absl::StrCat("an integer >= ", low), value);
  const absl::StatusOr<ParameterValue> number = search_spaces_json::ToParameterValue(value);
  if (!number.ok() || std::get<std::int64_t>(*number) > high) {
    return Needs(key, absl::StrCat("an integer <= ", high), value);
  }
  result = std::get<std::int64_t>(*number);
  if (result < low) return Needs(key, absl::StrCat("an integer >= ", low), value);
  return absl::OkStatus();
}

absl::Status StudyReader::Count(std::string_view key, const Json& value, std::int64_t low,
                                int& result) const {
  std::int64_t count = 0;
  ESPALIER_RETURN_IF_ERROR(Integer(key, value, low, kMaxCount, count));
  result = static_cast<int>(count);
  return absl::OkStatus();
}

absl::Status StudyReader::Number(std::string_view key, const Json& value, double& result) const {
  if (!value.is_number()) return Needs(key, "a number", value);
  result = value.get<double>();
  return absl::OkStatus();
}

absl::Status StudyReader::Range(const std::string& key, const char* what, double low, double high,
                                double& result) const {
  ESPALIER_RETURN_IF_ERROR(Number(key, json_[key], result));
  if (result >= low && result <= high) return absl::OkStatus();
  return Needs(key, absl::StrCat(what, " from ", low, " to ", high), json_[key]);
}

absl::Status StudyReader::Text(std::string_view key, const Json& value, std::size_t max_bytes,
                               std::string& result) const {
  if (!value.is_string()) return Needs(key, "a string", value);
  result = value.get<std::string>();
  if (result.empty() || HasNul(result)) return Needs(key, "a string that is not empty", value);
  if (result.size() > max_bytes) {
    return Bad(key, absl::StrCat("needs at most ", max_bytes, " bytes, got ", result.size()));
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Plugin(std::string_view key, const Json& value,
                                 PluginSpec& result) const {
  if (value.is_string()) {
    result.options.clear();
    return Text(key, value, kMaxNameBytes, result.name);
  }
  if (!value.is_object() || !value.contains("name")) {
    return Needs(key, R"(a name or an object like {"name": ..., option: number})", value);
  }
  result.options.clear();
  for (const auto& [option, setting] : value.items()) {
    const std::string place = absl::StrCat(std::string(key), ".", option);
    if (option == "name") {
      ESPALIER_RETURN_IF_ERROR(Text(place, setting, kMaxNameBytes, result.name));
    } else {
      ESPALIER_RETURN_IF_ERROR(Number(place, setting, result.options[option]));
    }
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Name(const Json& value) {
  // Other tools' users name their studies as they like.
  if (ByClients() && value.is_string()) {
    spec_.name = value.get<std::string>();
    return absl::OkStatus();
  }
  ESPALIER_RETURN_IF_ERROR(Text("name", value, kMaxNameBytes, spec_.name));
  if (!IsPlainName(spec_.name)) {
    return Needs("name",
                 "letters, digits, \"_\", \"-\" and \".\", the first a letter, digit or "
                 "\"_\"",
                 value);
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Command(const Json& value) {
  constexpr std::string_view kWhat =
      R"(the program a trial runs and its arguments: "python3 train.py" or ["python3", "train.py"])";
  if (value.is_string()) {
    absl::StatusOr<std::vector<std::string>> words = SplitWords(value.get<std::string>());
    if (!words.ok()) {
      return Bad("command",
                 absl::StrCat(std::string(words.status().message()), ", got ", Quote(value)));
    }
    spec_.command = *std::move(words);
  } else if (value.is_array()) {
    for (const Json& word : value) {
      if (!word.is_string()) return Needs("command", "a list of strings", value);
      spec_.command.push_back(word.get<std::string>());
    }
  } else {
    return Needs("command", kWhat, value);
  }
  if (spec_.command.empty() || spec_.command.front().empty()) return Needs("command", kWhat, value);
  if (spec_.command.size() > kMaxWords) {
    return Bad("command",
               absl::StrCat("needs at most ", kMaxWords, " words, got ", spec_.command.size()));
  }
  for (const std::string& word : spec_.command) {
    if (HasNul(word)) return Needs("command", "words without a zero byte", value);
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Metric(const Json& value) {
  if (value.is_string()) return Text("metric", value, kMaxNameBytes, spec_.metric);
  if (value == false) {
    spec_.has_metric = false;
    return absl::OkStatus();
  }
  if (!value.is_object()) {
    return Needs("metric",
                 R"(a name, {"name": ..., "direction": "minimize" or "maximize"}, or false)",
                 value);
  }
  constexpr std::array<std::string_view, 2> kKnown = {"name", "direction"};
  ESPALIER_RETURN_IF_ERROR(CheckKeys("metric.", value, kKnown));
  if (value.contains("name")) {
    ESPALIER_RETURN_IF_ERROR(Text("metric.name", value["name"], kMaxNameBytes, spec_.metric));
  }
  if (value.contains("direction")) {
    const std::optional<Direction> direction = DirectionOf(Word(value["direction"]));
    if (!direction) {
      return Needs("metric.direction", "\"minimize\" or \"maximize\"", value["direction"]);
    }
    spec_.directions = {*direction};
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Space(const Json& value) {
  if (!value.is_string() && !value.is_object()) {
    return Needs("search_space", "an object of parameters or the path of a file with one", value);
  }
  auto space = value.is_string() ? SearchSpaceOfFile(label_, folder_, Word(value), files_)
                                 : SearchSpaceWithin(label_, text_);
  if (space.ok()) spec_.space = *std::move(space);
  return space.status();
}

absl::Status StudyReader::TimeLimit(const Json& value) {
  ESPALIER_RETURN_IF_ERROR(Number("time_limit_s", value, spec_.time_limit_s));
  if (spec_.time_limit_s > 0 && spec_.time_limit_s <= kMaxTime_s) return absl::OkStatus();
  return Needs("time_limit_s", absl::StrCat("seconds, more than 0 and at most ", kMaxTime_s),
               value);
}

absl::Status StudyReader::Price(std::string_view key, const Json& value, double& result) const {
  ESPALIER_RETURN_IF_ERROR(Number(key, value, result));
  if (result > 0 && result <= kMaxPrice) return absl::OkStatus();
  return Needs(key, absl::StrCat("a price, more than 0 and at most ", kMaxPrice), value);
}

absl::Status StudyReader::Target(const Json& value) {
  double target = 0;
  ESPALIER_RETURN_IF_ERROR(Number("target", value, target));
  spec_.target = target;
  return absl::OkStatus();
}

absl::Status StudyReader::Promised(const Json& value) {
  if (!value.is_object()) return Needs("promise", R"(an object like {"best_k": 3})", value);
  constexpr std::array<std::string_view, 1> kKnown = {"best_k"};
  ESPALIER_RETURN_IF_ERROR(CheckKeys("promise.", value, kKnown));
  if (!value.contains("best_k")) return absl::OkStatus();
  std::int64_t best_k = 1;
  ESPALIER_RETURN_IF_ERROR(Integer("promise.best_k", value["best_k"], 1, kMostBestK, best_k));
  spec_.best_k = static_cast<int>(best_k);
  return absl::OkStatus();
}

absl::Status StudyReader::Slots(const Json& value) {
  std::int64_t min = 1;
  std::int64_t max = 0;
  if (value.is_object()) {
    constexpr std::array<std::string_view, 2> kKnown = {"min", "max"};
    ESPALIER_RETURN_IF_ERROR(CheckKeys("slots.", value, kKnown));
    if (value.contains("min")) {
      ESPALIER_RETURN_IF_ERROR(Integer("slots.min", value["min"], 1, kMaxSlots, min));
    }
    if (value.contains("max")) {
      ESPALIER_RETURN_IF_ERROR(Integer("slots.max", value["max"], 1, kMaxSlots, max));
      if (max < min) {
        return Needs("slots.max", absl::StrCat("an integer >= slots.min, which is ", min),
                     value["max"]);
      }
    }
  } else if (value.is_number()) {
    ESPALIER_RETURN_IF_ERROR(Integer("slots", value, 1, kMaxSlots, min));
    max = min;
  } else {
    return Needs("slots", R"(an integer or {"min": ..., "max": ...})", value);
  }
  spec_.min_slots = static_cast<int>(min);
  spec_.max_slots = static_cast<int>(max);
  return absl::OkStatus();
}

absl::Status StudyReader::Mode(const Json& value) {
  if (value != "fixed" && value != "adaptive") {
    return Needs("batch_mode", "\"fixed\" or \"adaptive\"", value);
  }
  spec_.batch_mode = value == "fixed" ? BatchMode::kFixed : BatchMode::kAdaptive;
  return absl::OkStatus();
}

absl::Status StudyReader::Stragglers(const Json& value) {
  if (value != "replace" && value != "ignore") {
    return Needs("stragglers", "\"replace\" or \"ignore\"", value);
  }
  spec_.replace_stragglers = value == "replace";
  return absl::OkStatus();
}

absl::Status StudyReader::Seed(const Json& value) {
  if (!value.is_number_unsigned()) return Needs("seed", "an integer from 0 to 2^64 - 1", value);
  spec_.seed = value.get<std::uint64_t>();
  return absl::OkStatus();
}

absl::Status StudyReader::Timeouts(const Json&) {
  for (const auto& [key, option, help, seconds] : kTimeoutKeys) {
    if (!json_.contains(key)) continue;
    ESPALIER_RETURN_IF_ERROR(
        Range(key, "seconds", kLeastTimeout_s, kMaxTime_s, spec_.timeouts.*seconds));
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Environment(const Json& value) {
  ESPALIER_ASSIGN_OR_RETURN(spec_.environment, ReadEnvironment(label_, value.dump()));
  return absl::OkStatus();
}

absl::Status StudyReader::Preload(const Json& value) {
  ESPALIER_ASSIGN_OR_RETURN(spec_.preload, ReadPreload(label_, value.dump()));
  return absl::OkStatus();
}

absl::Status StudyReader::NeededFiles(const Json& value) {
  if (!value.is_object()) {
    return Needs("needs", "an object of file: what to do when it is missing", value);
  }
  for (const auto& [file, remedy] : value.items()) {
    std::string text;
    ESPALIER_RETURN_IF_ERROR(Text(absl::StrCat("needs.", file), remedy, kMaxRemedyBytes, text));
    spec_.needs[(std::filesystem::path(folder_) / file).lexically_normal().string()] = text;
  }
  return absl::OkStatus();
}

absl::Status StudyReader::Directory(const Json& value) {
  std::string text;
  ESPALIER_RETURN_IF_ERROR(Text("directory", value, std::numeric_limits<std::size_t>::max(), text));
  spec_.directory = (std::filesystem::path(folder_) / text).lexically_normal().string();
  return absl::OkStatus();
}

absl::Status StudyReader::AskAndTell(const Json& value) {
  if (!value.is_boolean()) return Needs("ask_and_tell", "true or false", value);
  if (value == true) spec_.kind = StudyKind::kByClients;
  return absl::OkStatus();
}

absl::Status StudyReader::Directions(const Json& value) {
  constexpr std::string_view kWhat = R"(a list of "minimize" and "maximize")";
  if (!ByClients()) {
    return Bad("directions",
               "is for studies with \"ask_and_tell\": true; give \"metric\": {\"direction\": ...}");
  }
  if (!value.is_array()) return Needs("directions", kWhat, value);
  spec_.directions.clear();
  for (const Json& word : value) {
    const std::optional<Direction> direction = DirectionOf(Word(word));
    if (!direction) return Needs("directions", kWhat, word);
    spec_.directions.push_back(*direction);
  }
  return absl::OkStatus();
}

absl::Status StudyReader::ReadName() {
  if (json_.contains("name")) return absl::OkStatus();
  const std::filesystem::path path(label_);
  if (path.extension() != ".json") return Bad("name", "is missing; every study needs one");
  if (const absl::Status status = Name(path.stem().string()); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(status.message()), ", which is the file's name; give the key \"name\""));
  }
  return absl::OkStatus();
}

absl::Status StudyReader::CheckRequired() const {
  if (spec_.by_clients()) {
    if (!json_.contains("command")) return absl::OkStatus();
    return Bad("command",
               "has no place in a study with \"ask_and_tell\": its clients run the trials");
  }
  if (!json_.contains("command")) {
    return Bad("command", R"(is missing; give what a trial runs, as in ["python3", "train.py"])");
  }
  // Jobs have nothing to search.
  if (!json_.contains("search_space") && !spec_.queued() && spec_.has_metric) {
    return Bad("search_space",
               R"(is missing; give parameters, as in {"lr": {"_type": "loguniform", "_value": )"
               "[1e-5, 1]}}");
  }
  return absl::OkStatus();
}

absl::Status StudyReader::CheckTogether() const {
  if (spec_.by_clients()) return absl::OkStatus();
  if (const absl::Status cost = CheckCostLimit(spec_); !cost.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(label_, ": ", std::string(cost.message())));
  }
  const bool limited = spec_.max_trials > 0 || spec_.time_limit_s > 0 || spec_.cost_limit > 0 ||
                       spec_.target.has_value();
  if (!limited && !spec_.queued() && !spec_.space.Cardinality()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label_, ": the study would never end: its search space is infinite; give \"trials\", ",
        "\"time_limit_s\", \"cost_limit\" or \"target\""));
  }
  if (spec_.batch_mode == BatchMode::kAdaptive) {
    for (const auto& dimension : spec_.space.dimensions()) {
      if (dimension.name != "batch_size") continue;
      return Bad("batch_mode",
                 "needs \"fixed\" (or nothing) when the search space has \"batch_size\", got "
                 "\"adaptive\": a batch size that changes during a trial cannot be searched");
    }
  }
  return absl::OkStatus();
}

// What is written from the fields alone, so that it no longer depends on where the file lies, is
// not kept as it was worded.
void StudyReader::KeepWording() {
  for (const auto& [key, value] : json_.items()) {
    if (key == "name" || key == "directory") continue;
    if (key == "search_space" && !spec_.space.dimensions().empty()) continue;
    const Json& kept = key == "needs" ? Json(spec_.needs) : value;
    spec_.wording.texts[key] = kept.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

absl::Status StudyReader::ReadFields() {
  for (const Key& key : kKeys) {
    const auto value = json_.find(key.name);
    if (value == json_.end()) continue;
    ESPALIER_RETURN_IF_ERROR((this->*key.read)(*value));
    spec_.names_policy = spec_.names_policy || key.name == "policy";
  }
  spec_.SetKindBySampler();
  return absl::OkStatus();
}

absl::StatusOr<StudySpec> StudyReader::Read() {
  std::array<std::string_view, kKeys.size()> known;
  std::transform(kKeys.begin(), kKeys.end(), known.begin(),
                 [](const Key& key) { return key.name; });
  if (!json_.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label_, ": needs a JSON object, got ", Quote(json_)));
  }
  ESPALIER_RETURN_IF_ERROR(CheckKeys("", json_, known));
  ESPALIER_RETURN_IF_ERROR(ReadName());
  spec_.directory = std::filesystem::path(folder_).lexically_normal().string();
  ESPALIER_RETURN_IF_ERROR(ReadFields());
  ESPALIER_RETURN_IF_ERROR(CheckRequired());
  ESPALIER_RETURN_IF_ERROR(CheckTogether());
  KeepWording();
  ESPALIER_RETURN_IF_ERROR(CheckStudySize(spec_, label_));
  return std::move(spec_);
}

}  // namespace

absl::StatusOr<StudySpec> ParseStudy(std::string_view json, const std::string& label,
                                     const std::string& directory, SpaceFiles files) {
  ESPALIER_ASSIGN_OR_RETURN(Json parsed, search_spaces_json::Parse(label, json));
  return StudyReader(json, std::move(parsed), label, directory, files).Read();
}

StudySpec FieldsOf(const StudyWording& wording) {
  Json json = Json::object();
  for (const auto& [key, text] : wording.texts) json[key] = Json::parse(text);
  return StudyReader("", std::move(json), "wording", "", SpaceFiles::kRefused).Fields();
}

}  // namespace espalier
