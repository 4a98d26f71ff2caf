#include "tuner/server/optuna/outside_messages.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json/parse_json.h"
#include "search_spaces/overloaded.h"
#include "search_spaces/unit_interval.h"

namespace espalier {

namespace {

using Json = nlohmann::ordered_json;

// Optuna's names of states.
constexpr std::string_view kComplete = "COMPLETE";
constexpr std::string_view kPruned = "PRUNED";
constexpr std::string_view kFailed = "FAIL";

constexpr int kOpenFiles = 256;
constexpr double kStartProcessor_s = 120;  // Python, Optuna and the hub's package
constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr std::size_t kMostStoredBytes = std::size_t{1} << 20;  // with one trial
// Of a bell curve, on the interval of its probabilities.
constexpr double kLeastProbability = 1e-9;

Json LineOf(const char* kind, double low, double high) {
  return {{"kind", kind}, {"low", low}, {"high", high}};
}

bool IsMultiple(double x, double q) { return std::abs(x - RoundToMultiple(x, q)) <= 1e-9 * q; }

// How Optuna sees a parameter. It has no rounded logarithms and no bell curves: the former are
// continuous to it, and rounded here; the latter are on the interval of their probabilities.
Json SeenByOptuna(const Distribution& distribution) {
  const auto bell = LineOf("float", kLeastProbability, 1 - kLeastProbability);
  return std::visit(
      Overloaded{[](const Choice& d) {
                   Json options = Json::array();
                   for (const ParameterValue& option : d.options) {
                     options.push_back(ParseJson<Json>(ToJson(option)));
                   }
                   return Json{{"kind", "choice"}, {"options", std::move(options)}};
                 },
                 [](const RandInt& d) {
                   return Json{{"kind", "whole"}, {"low", d.low}, {"high", d.high - 1}};
                 },
                 [](const Uniform& d) { return LineOf("float", d.low, d.high); },
                 [](const QUniform& d) {
                   Json line = LineOf("float", d.low, d.high);
                   if (IsMultiple(d.low, d.q) && IsMultiple(d.high, d.q)) line["step"] = d.q;
                   return line;
                 },
                 [](const LogUniform& d) { return LineOf("log", d.low, d.high); },
                 [](const QLogUniform& d) { return LineOf("log", d.low, d.high); },
                 [&](const Normal&) { return bell; }, [&](const QNormal&) { return bell; },
                 [&](const LogNormal&) { return bell; }, [&](const QLogNormal&) { return bell; }},
      distribution);
}

bool IsBell(const Distribution& distribution) {
  return std::holds_alternative<Normal>(distribution) ||
         std::holds_alternative<QNormal>(distribution) ||
         std::holds_alternative<LogNormal>(distribution) ||
         std::holds_alternative<QLogNormal>(distribution);
}

// Requires a value that the distribution contains.
double ToOptuna(const Distribution& distribution, const ParameterValue& value) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    const auto at = std::ranges::find_if(
        choice->options, [&](const ParameterValue& option) { return SameValue(option, value); });
    return static_cast<double>(at - choice->options.begin());
  }
  if (IsBell(distribution)) {
    return std::clamp(ToUnit(distribution, value).Middle(), kLeastProbability,
                      1 - kLeastProbability);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

ParameterValue FromOptuna(const Distribution& distribution, double value) {
  const auto rounded = [value](const auto& d) -> ParameterValue {
    return std::clamp(RoundToMultiple(value, d.q), d.low, d.high);
  };
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    const double last = static_cast<double>(choice->options.size()) - 1;
    return choice->options[static_cast<std::size_t>(std::clamp(value, 0.0, last))];
  }
  if (std::holds_alternative<RandInt>(distribution)) return static_cast<std::int64_t>(value);
  if (const auto* steps = std::get_if<QUniform>(&distribution)) return rounded(*steps);
  if (const auto* steps = std::get_if<QLogUniform>(&distribution)) return rounded(*steps);
  if (IsBell(distribution)) return FromUnit(distribution, std::clamp(value, 0.0, 1.0));
  return value;
}

// As Python reads it.
std::string NumberText(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return absl::StrFormat("%.17g", number);
}

template <typename Items, typename TextOf>
std::string ListText(const Items& items, TextOf text_of) {
  std::string text = "[";
  for (const auto& item : items) absl::StrAppend(&text, text.size() > 1 ? "," : "", text_of(item));
  return text + "]";
}

std::string ParametersText(const SearchSpace& space, const Parameters& parameters) {
  std::string text = "[";
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const auto& [name, distribution, _] = space.dimensions()[i];
    const ParameterValue* value = Find(parameters, name);
    if (value == nullptr) continue;
    absl::StrAppend(&text, text.size() > 1 ? "," : "", "[", i, ",",
                    NumberText(ToOptuna(distribution, *value)), "]");
  }
  return text + "]";
}

std::vector<double> ValuesOf(const Observation& trial) {
  std::vector<double> values = {trial.value};
  values.insert(values.end(), trial.other_values.begin(), trial.other_values.end());
  return values;
}

bool IsTooGood(double value, Direction direction) {
  return std::isinf(value) && (value > 0) == (direction == Direction::kMaximize);
}

// What is no value, or too good to be true, is that of a failed trial. Optuna prunes trials of one
// objective alone.
std::string_view StateOf(const DrawRequest& request, const Observation& trial) {
  const std::vector<double> values = ValuesOf(trial);
  std::vector<Direction> directions = {request.direction};
  directions.insert(directions.end(), request.other_directions.begin(),
                    request.other_directions.end());
  if (trial.pruned) {
    const bool has_value = directions.size() == 1 && !std::isnan(trial.value);
    return has_value && !IsTooGood(trial.value, request.direction) ? kPruned : kFailed;
  }
  if (values.size() != directions.size()) return kFailed;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) || IsTooGood(values[i], directions[i])) return kFailed;
  }
  return kComplete;
}

// A constraint that is not known is broken.
double BrokenUnlessKnown(double constraint) {
  return std::isnan(constraint) ? std::numeric_limits<double>::infinity() : constraint;
}

std::string EndedText(const DrawRequest& request, const Observation& trial) {
  if (!request.space.Validate(*trial.parameters).ok()) {
    return absl::StrCat("[", trial.trial_number, ",\"FAIL\",[],0,[],[]]");
  }
  const std::string_view state = StateOf(request, trial);
  std::vector<double> values = ValuesOf(trial);
  if (state == kPruned) values.resize(1);
  if (state == kFailed) values.clear();
  return absl::StrCat(
      "[", trial.trial_number, ",\"", std::string(state), "\",", ListText(values, NumberText), ",",
      trial.last_step, ",",
      ListText(trial.constraints, [](double c) { return NumberText(BrokenUnlessKnown(c)); }), ",",
      ParametersText(request.space, *trial.parameters), "]");
}

std::string QuotedJson(std::string_view text) { return Json(std::string(text)).dump(); }

}  // namespace

std::string ConfiningMessage(const OptunaOptions& options) {
  const Json message = {{"parent", getpid()},
                        {"memory_bytes", static_cast<std::int64_t>(options.memory_gib * kGib)},
                        {"files", kOpenFiles},
                        {"processor_s", std::max(options.processor_s, kStartProcessor_s)},
                        {"folders", options.hubs}};
  return message.dump() + "\n";
}

std::string StudyMessage(const DrawRequest& request) {
  Json space = Json::array();
  for (const auto& [name, distribution, condition] : request.space.dimensions()) {
    Json dimension = SeenByOptuna(distribution);
    dimension["name"] = name;
    if (condition) dimension["if"] = {condition->parent, condition->option};
    space.push_back(std::move(dimension));
  }
  const auto name_of = [](Direction direction) {
    return direction == Direction::kMinimize ? "MINIMIZE" : "MAXIMIZE";
  };
  Json directions = {name_of(request.direction)};
  for (const Direction direction : request.other_directions)
    directions.push_back(name_of(direction));
  const OutsideSampler& sampler = *request.sampler->outside();
  const Json message = {{"space", std::move(space)},
                        {"directions", std::move(directions)},
                        {"sampler", sampler.name},
                        {"package", sampler.package},
                        {"options", ParseJson<Json>(sampler.options)}};
  return message.dump() + "\n";
}

std::string CheckMessage(const DrawRequest& request, double processor_s, bool constrained) {
  return absl::StrCat(R"({"constrained":)", constrained ? "true" : "false", ",",
                      ToldHistory().MessageOf(request, processor_s).substr(1));
}

std::string ToldHistory::MessageOf(const DrawRequest& request, double processor_s) {
  std::vector<const Observation*> ended;
  std::vector<const Observation*> held;
  for (const Observation& trial : request.ended) {
    const auto number = static_cast<std::size_t>(trial.trial_number);
    if (number < ended_.size() && ended_[number]) continue;
    if (std::ranges::binary_search(request.held_numbers, trial.trial_number)) {
      held.push_back(&trial);
      continue;
    }
    if (number >= ended_.size()) ended_.resize(number + 1);
    ended_[number] = true;
    ended.push_back(&trial);
  }
  const auto trial_text = [&](const Observation* trial) { return EndedText(request, *trial); };
  std::string running = "[";
  for (std::size_t i = 0; i < request.running.size(); ++i) {
    if (!request.space.Validate(*request.running[i]).ok()) continue;
    absl::StrAppend(&running, running.size() > 1 ? "," : "", "[", request.running_numbers[i],
                    ",\"RUNNING\",[],0,[],", ParametersText(request.space, *request.running[i]),
                    "]");
  }
  std::string stored = "[";
  for (const auto& [number, text] : request.stored.trials) {
    if (!stored_.insert(number).second) continue;
    absl::StrAppend(&stored, stored.size() > 1 ? "," : "", "[", number, ",", QuotedJson(*text),
                    "]");
  }
  constexpr std::uint64_t kSeeds = std::uint64_t{1} << 32;  // that NumPy takes
  std::string message = absl::StrCat(
      R"({"number":)", request.trial_number, R"(,"seed":)", request.seed % kSeeds,
      R"(,"study_seed":)", request.study_seed % kSeeds, R"(,"processor_s":)",
      NumberText(processor_s), R"(,"ended":)", ListText(ended, trial_text), R"(,"held":)",
      ListText(held, trial_text), R"(,"running":)", running, R"(],"stored":)", stored, "]");
  if (!request.stored.study.empty() && request.stored.study != stored_of_study_) {
    stored_of_study_ = request.stored.study;
    absl::StrAppend(&message, R"(,"stored_of_study":)", QuotedJson(stored_of_study_));
  }
  return message + "}\n";
}

absl::Status RefusalIn(std::string_view answer) {
  const Json json = ParseJson<Json>(answer);
  if (!json.is_object()) return absl::InternalError("it has answered what is no JSON");
  const auto refused = json.find("refused");
  if (refused == json.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(refused->is_string() ? refused->get<std::string>()
                                                            : "it has refused");
}

bool FilesAreConfined(std::string_view answer) {
  const Json json = ParseJson<Json>(answer);
  return json.is_object() && json.value("files_confined", Json(false)) == true;
}

absl::StatusOr<Drawn> ReadSuggestion(const DrawRequest& request, std::string_view answer) {
  ESPALIER_RETURN_IF_ERROR(RefusalIn(answer));
  const Json json = ParseJson<Json>(answer);
  const auto given = json.find("parameters");
  if (given == json.end() || !given->is_array()) {
    return absl::InternalError("it has answered without parameters");
  }
  Parameters parameters;
  const auto& dimensions = request.space.dimensions();
  for (const Json& one : *given) {
    const bool sound = one.is_array() && one.size() == 2 && one[0].is_number_unsigned() &&
                       one[1].is_number() && one[0].get<std::size_t>() < dimensions.size();
    if (!sound) return absl::InternalError("it has answered what are no parameters");
    const auto& [name, distribution, _] = dimensions[one[0].get<std::size_t>()];
    parameters.push_back({name, FromOptuna(distribution, one[1].get<double>())});
  }
  if (const absl::Status valid = request.space.Validate(parameters); !valid.ok()) {
    return absl::InternalError(absl::StrCat("it has suggested ", valid.message()));
  }
  Drawn drawn{.parameters = std::move(parameters), .random = Random(request.seed)};
  for (const auto& [key, text] : {std::pair("stored", &drawn.stored_of_trial),
                                  std::pair("stored_of_study", &drawn.stored_of_study)}) {
    const auto stored = json.find(key);
    if (stored != json.end() && stored->is_string()) *text = stored->get<std::string>();
  }
  if (drawn.stored_of_trial.size() > kMostStoredBytes) {
    return absl::FailedPreconditionError(absl::StrCat("it keeps ", drawn.stored_of_trial.size(),
                                                      " bytes with a trial, more than ",
                                                      kMostStoredBytes));
  }
  return drawn;
}

}  // namespace espalier
