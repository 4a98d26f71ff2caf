#include "tuner/study_file/keys.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/json/parse_json.h"
#include "base/launch_kinds.h"
#include "tuner/core/promise/promise.h"
#include "tuner/core/state/refusals.h"
#include "tuner/study_file/constraint_key.h"
#include "tuner/study_file/like_key.h"
#include "tuner/study_file/metric_key.h"
#include "tuner/study_file/plugin_key.h"
#include "tuner/study_file/point_keys.h"
#include "tuner/study_file/population_key.h"
#include "tuner/study_file/study_search_space.h"
#include "tuner/study_file/timeout_keys.h"
#include "tuner/study_file/trial_start.h"
#include "tuner/study_file/words.h"

namespace espalier {

namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

constexpr std::size_t kMaxWords = 1024;        // of a command
constexpr std::size_t kMaxRemedyBytes = 1024;  // for a needed file that is missing
constexpr std::int64_t kMaxSlots = 1'000'000;  // of a trial
constexpr std::size_t kMaxSizes = 64;          // of a trial

// ---- Reading ---------------------------------------------------------------------------------

absl::Status ReadCommand(const KeyValue& value, StudySpec& spec) {
  constexpr std::string_view kWhat =
      R"(the program a trial runs and its arguments: "python3 train.py" or ["python3", "train.py"])";
  const Json& json = value.json();
  if (json.is_string()) {
    absl::StatusOr<std::vector<std::string>> words = SplitWords(value.Word());
    if (!words.ok()) {
      return value.Bad(absl::StrCat(std::string(words.status().message()), ", got ", Quote(json)));
    }
    spec.command = *std::move(words);
  } else if (json.is_array()) {
    for (const Json& word : json) {
      if (!word.is_string()) return value.Needs("a list of strings");
      spec.command.push_back(word.get<std::string>());
    }
  } else {
    return value.Needs(kWhat);
  }
  if (spec.command.empty() || spec.command.front().empty()) return value.Needs(kWhat);
  if (spec.command.size() > kMaxWords) {
    return value.Bad(
        absl::StrCat("needs at most ", kMaxWords, " words, got ", spec.command.size()));
  }
  for (const std::string& word : spec.command) {
    if (HasNul(word)) return value.Needs("words without a zero byte");
  }
  return absl::OkStatus();
}

absl::Status ReadRanks(const KeyValue& value, StudySpec& spec) {
  const std::string word = value.Word();
  if (word != "mean" && word != "same") return value.Needs("\"same\" or \"mean\"");
  spec.mean_of_ranks = word == "mean";
  return absl::OkStatus();
}

absl::Status ReadSpace(const KeyValue& value, StudySpec& spec) {
  if (!value.json().is_string() && !value.json().is_object()) {
    return value.Needs("an object of parameters or the path of a file with one");
  }
  const OpenStudyFile& file = value.file();
  auto space = value.json().is_string()
                   ? SearchSpaceOfFile(file.label, file.folder, value.Word(), file.files)
                   : SearchSpaceWithin(file.label, file.text);
  if (!space.ok()) return space.status();
  spec.space = *std::move(space);
  return absl::OkStatus();
}

absl::Status ReadTimeLimit(const KeyValue& value, StudySpec& spec) {
  ESPALIER_RETURN_IF_ERROR(value.Number(spec.time_limit_s));
  if (spec.time_limit_s > 0 && spec.time_limit_s <= kMaxTime_s) return absl::OkStatus();
  return value.Needs(absl::StrCat("seconds, more than 0 and at most ", kMaxTime_s));
}

absl::Status ReadPromise(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (!json.is_object()) return value.Needs(R"(an object like {"best_k": 3})");
  constexpr std::array<std::string_view, 1> kKnown = {"best_k"};
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(kKnown));
  if (!json.contains("best_k")) return absl::OkStatus();
  return KeyValue(value.file(), "promise.best_k", json["best_k"])
      .Integer(1, kMostBestK, spec.best_k);
}

// The sizes that a trial may have, in any order.
absl::Status ReadSizes(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (json.empty() || json.size() > kMaxSizes) {
    return value.Needs(absl::StrCat("a list of 1 to ", kMaxSizes, " sizes"));
  }
  std::vector<int> sizes;
  for (const Json& size : json) {
    std::int64_t slots = 0;
    ESPALIER_RETURN_IF_ERROR(KeyValue(value.file(), "slots", size).Integer(1, kMaxSlots, slots));
    if (std::find(sizes.begin(), sizes.end(), slots) != sizes.end()) {
      return value.Needs(absl::StrCat("each size once; ", slots, " is there twice"));
    }
    sizes.push_back(static_cast<int>(slots));
  }
  std::sort(sizes.begin(), sizes.end());
  spec.min_slots = sizes.front();
  spec.max_slots = sizes.back();
  if (sizes.size() > 1) spec.slot_sizes = std::move(sizes);
  return absl::OkStatus();
}

absl::Status ReadSlots(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (json.is_array()) return ReadSizes(value, spec);
  std::int64_t min = 1;
  std::int64_t max = 0;
  if (json.is_object()) {
    constexpr std::array<std::string_view, 2> kKnown = {"min", "max"};
    ESPALIER_RETURN_IF_ERROR(value.CheckKeys(kKnown));
    if (json.contains("min")) {
      const KeyValue least(value.file(), "slots.min", json["min"]);
      ESPALIER_RETURN_IF_ERROR(least.Integer(1, kMaxSlots, min));
    }
    if (json.contains("max")) {
      const KeyValue most(value.file(), "slots.max", json["max"]);
      ESPALIER_RETURN_IF_ERROR(most.Integer(1, kMaxSlots, max));
      if (max < min) {
        return most.Needs(absl::StrCat("an integer >= slots.min, which is ", min));
      }
    }
  } else if (json.is_number()) {
    ESPALIER_RETURN_IF_ERROR(value.Integer(1, kMaxSlots, min));
    max = min;
  } else {
    return value.Needs(R"(an integer, {"min": ..., "max": ...} or a list of sizes like [2, 4, 8])");
  }
  spec.min_slots = static_cast<int>(min);
  spec.max_slots = static_cast<int>(max);
  return absl::OkStatus();
}

absl::Status ReadResize(const KeyValue& value, StudySpec& spec) {
  spec.resize_by_restart = value.json() == "restart";
  if (spec.resize_by_restart || value.json() == "elastic") return absl::OkStatus();
  return value.Needs("\"restart\" or \"elastic\"");
}

absl::Status ReadLaunch(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  const std::string kinds = absl::StrCat("one of ", NamesOfLaunchKinds());
  const std::string what =
      absl::StrCat(kinds, R"(, or a list of it and options of the launcher, as ["accelerate", )",
                   R"("--mixed_precision=bf16"])");
  if (!json.is_string() && !json.is_array()) return value.Needs(what);
  if (json.size() > kMaxWords) {
    return value.Bad(absl::StrCat("needs at most ", kMaxWords, " words, got ", json.size()));
  }
  std::vector<std::string> words;
  for (const Json& word : json.is_array() ? json : Json::array({json})) {
    if (!word.is_string() || HasNul(word.get<std::string>())) return value.Needs(what);
    words.push_back(word.get<std::string>());
  }
  const LaunchKind* const kind = words.empty() ? nullptr : FindLaunchKind(words.front());
  if (kind == nullptr) return value.Needs(what);
  if (kind->module.empty() && words.size() > 1) {
    return value.Bad(
        absl::StrCat("needs no options for \"", std::string(kind->name), "\", got ", Quote(json)));
  }
  spec.launch = std::move(words);
  return absl::OkStatus();
}

absl::Status ReadBatchMode(const KeyValue& value, StudySpec& spec) {
  const bool fixed = value.json() == "fixed";
  if (!fixed && value.json() != "adaptive") return value.Needs("\"fixed\" or \"adaptive\"");
  spec.batch_mode = fixed ? BatchMode::kFixed : BatchMode::kAdaptive;
  return absl::OkStatus();
}

absl::Status ReadSeed(const KeyValue& value, StudySpec& spec) {
  if (!value.json().is_number_unsigned()) return value.Needs("an integer from 0 to 2^64 - 1");
  spec.seed = value.json().get<std::uint64_t>();
  return absl::OkStatus();
}

absl::Status ReadStragglers(const KeyValue& value, StudySpec& spec) {
  spec.replace_stragglers = value.json() == "replace";
  if (spec.replace_stragglers || value.json() == "ignore") return absl::OkStatus();
  return value.Needs("\"replace\" or \"ignore\"");
}

template <std::size_t kIndex>
absl::Status ReadTimeout(const KeyValue& value, StudySpec& spec) {
  return value.Range("seconds", kLeastTimeout_s, kMaxTime_s,
                     spec.timeouts.*kTimeoutKeys[kIndex].seconds);
}

absl::Status ReadVariables(const KeyValue& value, StudySpec& spec) {
  ESPALIER_ASSIGN_OR_RETURN(spec.environment,
                            ReadEnvironment(value.file().label, value.json().dump()));
  return absl::OkStatus();
}

absl::Status ReadModules(const KeyValue& value, StudySpec& spec) {
  ESPALIER_ASSIGN_OR_RETURN(spec.preload, ReadPreload(value.file().label, value.json().dump()));
  return absl::OkStatus();
}

// As its folder makes it.
std::string PathIn(const OpenStudyFile& file, const std::string& path) {
  return (std::filesystem::path(file.folder) / path).lexically_normal().string();
}

absl::Status ReadNeeds(const KeyValue& value, StudySpec& spec) {
  if (!value.json().is_object()) {
    return value.Needs("an object of file: what to do when it is missing");
  }
  for (const auto& [path, remedy] : value.json().items()) {
    if (HasNul(path)) return value.Needs("names of files without a zero byte");
    const std::string place = absl::StrCat("needs.", path);
    std::string text;
    ESPALIER_RETURN_IF_ERROR(KeyValue(value.file(), place, remedy).Text(kMaxRemedyBytes, text));
    spec.needs[PathIn(value.file(), path)] = text;
  }
  return absl::OkStatus();
}

absl::Status ReadDirectory(const KeyValue& value, StudySpec& spec) {
  std::string text;
  ESPALIER_RETURN_IF_ERROR(value.Text(std::numeric_limits<std::size_t>::max(), text));
  spec.directory = PathIn(value.file(), text);
  return absl::OkStatus();
}

absl::Status ReadAskAndTell(const KeyValue& value, StudySpec& spec) {
  if (!value.json().is_boolean()) return value.Needs("true or false");
  if (value.json() == true) spec.kind = StudyKind::kByClients;
  return absl::OkStatus();
}

absl::Status ReadDirections(const KeyValue& value, StudySpec& spec) {
  constexpr std::string_view kWhat = R"(a list of "minimize" and "maximize")";
  if (!value.file().ByClients()) {
    return value.Bad(
        "is for studies with \"ask_and_tell\": true; give \"metric\": {\"direction\": ...}");
  }
  if (!value.json().is_array()) return value.Needs(kWhat);
  spec.directions.clear();
  for (const Json& word : value.json()) {
    const std::optional<Direction> direction =
        word.is_string() ? DirectionOf(word.get<std::string>()) : std::nullopt;
    if (!direction) return value.Needs(kWhat, word);
    spec.directions.push_back(*direction);
  }
  return absl::OkStatus();
}

// ---- Writing ---------------------------------------------------------------------------------

// Null, which is not written, for 0.
Json Unless0(double number) { return number == 0 ? Json() : JsonOf(number); }
Json Unless0(std::int64_t number) { return number == 0 ? Json() : Json(number); }

Json SpaceJson(const StudySpec& spec) {
  return spec.space.dimensions().empty() ? Json()
                                         : ParseJson<Json>(spec.space.ToJson(), kMaxRecordDepth);
}

Json DirectionsJson(const StudySpec& spec) {
  if (!spec.by_clients()) return {};
  Json directions = Json::array();
  for (const Direction direction : spec.directions) directions.push_back(ToString(direction));
  return directions;
}

Json SlotsJson(const StudySpec& spec) {
  if (!spec.slot_sizes.empty()) return spec.slot_sizes;
  if (spec.min_slots == spec.max_slots) return spec.min_slots;
  Json slots = {{"min", spec.min_slots}};
  if (spec.max_slots > 0) slots["max"] = spec.max_slots;
  return slots;
}

// Null, which is not written, where there is none.
Json LaunchJson(const StudySpec& spec) {
  if (spec.launch.empty()) return {};
  return spec.launch.size() == 1 ? Json(spec.launch.front()) : Json(spec.launch);
}

template <std::size_t kIndex>
Json TimeoutJson(const StudySpec& spec) {
  return Unless0(spec.timeouts.*kTimeoutKeys[kIndex].seconds);
}

// ---- The table -------------------------------------------------------------------------------

constexpr std::array<StudyKey, 45> kStudyKeys = {{
    {"name",
     ReadName,
     {[](const StudySpec& s) { return Json(s.name); }, KeyText::kAlwaysByField},
     {"the study's name: letters, digits, `_`, `-` and `.`, the first a letter, digit or `_`; at "
      "most 128 bytes",
      "the file's name without `.json`, `.yaml` or `.yml`"}},
    {"command",
     ReadCommand,
     {[](const StudySpec& s) { return Json(s.command); }},
     {"the trials' command: a list of words, or one string that is split by a shell's quoting "
      "rules. `{lr}` in a word is the trial's value of the parameter, see [existing "
      "scripts](../../docs/existing_scripts.md#parameters-in-a-command). No shell runs; for pipes "
      "and "
      R"(variables use `["sh", "-c", "..."]`)",
      "required"}},
    {"metric",
     ReadMetric,
     {MetricJson},
     {R"(its name, which is then minimized, or `{"name": ..., "direction": "minimize"` or )"
      "`\"maximize\"}`; with `\"from_output\": \"val_loss=([0-9.e+-]+)\"` in it, values are read "
      "from what trials print, with `\"from_file\"` or `\"from_tensorboard\"` from what they "
      "write, see [existing scripts](../../docs/existing_scripts.md#values-from-the-output). A "
      "list of metrics, by names or with directions: [several objectives](../../docs/objectives.md"
      "). `false` for jobs, which need no `search_space` and are then one trial: a "
      "trial that exits with 0 is complete, whether or not it has reported",
      "`value`, minimized"}},
    {"constraints", ReadConstraints, {ConstraintsJson}, {kConstraintsMeaning, "none"}},
    {"ranks",
     ReadRanks,
     {[](const StudySpec& s) { return s.mean_of_ranks ? Json("mean") : Json(); }},
     {"`mean`: the value of a step is the mean of what the ranks of a trial's program report for "
      "it; `same`: they report alike, and it counts once, see [existing "
      "scripts](../../docs/existing_scripts.md#values-from-several-ranks)",
      "`same`"}},
    {"search_space",
     ReadSpace,
     {SpaceJson, KeyText::kByField},
     {"parameters in [NNI's format](../../docs/search_spaces.md), or the path of a file with "
      "them, taken from this file's folder",
      "required"}},
    {"points", ReadPoints, {PointsJson}, {kPointsMeaning, "none"}},
    {"fixed", ReadFixed, {FixedJson}, {kFixedMeaning, "none"}},
    {"prior", ReadPrior, {PriorJson}, {kPriorMeaning, "none"}},
    {"like", ReadLike, {LikeJson}, {kLikeMeaning, "none"}},
    {"sampler",
     [](const KeyValue& v, StudySpec& s) { return ReadPlugin(v, s.sampler); },
     {[](const StudySpec& s) { return JsonOf(s.sampler); }},
     {R"(a name, or `{"name": ..., option: value, ...}`, where a value is a number, `true`, )"
      "`false`, a word, lists of numbers or an object (`tuner plugins` lists them). `queue` draws "
      "nothing: the pool runs the trials that clients enqueue ([HTTP](../../docs/http.md)); the "
      "study needs no `search_space` (with one, parameters are checked against it), and continues "
      "until it is stopped or a limit is reached",
      "`tpe`"}},
    {"population", ReadPopulation, {PopulationJson}, {kPopulationMeaning, "none"}},
    {"pruner",
     [](const KeyValue& v, StudySpec& s) { return ReadPlugin(v, s.pruner); },
     {[](const StudySpec& s) { return JsonOf(s.pruner); }},
     {"in the same form", "`none`"}},
    {"terminator",
     [](const KeyValue& v, StudySpec& s) { return ReadPlugin(v, s.terminator); },
     {[](const StudySpec& s) {
       return s.terminator == PluginSpec{"none", {}} ? Json() : JsonOf(s.terminator);
     }},
     {"in the same form: `stagnation`, `regret` and `emmr` end when more trials would gain little, "
      R"(`{"name": "stagnation", "trials": 30}`; see [ends](../../docs/allocation.md#ends))",
      "`none`"}},
    {"policy",
     [](const KeyValue& v, StudySpec& s) {
       s.names_policy = true;
       return ReadPlugin(v, s.policy);
     },
     {[](const StudySpec& s) { return JsonOf(s.policy); }},
     {"in the same form: how slots are allocated", "`promise_goodput`"}},
    {"trials",
     [](const KeyValue& v, StudySpec& s) { return v.Integer(1, kMaxCount, s.max_trials); },
     {[](const StudySpec& s) { return Unless0(s.max_trials); }},
     {"end after this many trials", "no limit"}},
    {"time_limit_s",
     ReadTimeLimit,
     {[](const StudySpec& s) { return Unless0(s.time_limit_s); }},
     {"end after this many seconds of running; time while stopped does not count", "no limit"}},
    {"cost_limit",
     [](const KeyValue& v, StudySpec& s) { return v.Price(s.cost_limit); },
     {[](const StudySpec& s) { return Unless0(s.cost_limit); }},
     {"end before the slots of its trials have cost more than this, at the price in the next key",
      "no limit"}},
    {"slot_price_per_hour",
     [](const KeyValue& v, StudySpec& s) { return v.Price(s.slot_price_per_hour); },
     {[](const StudySpec& s) { return Unless0(s.slot_price_per_hour); }},
     {"the price of one slot for an hour; `tuner show` shows the amount spent", "unknown"}},
    {"target",
     [](const KeyValue& v, StudySpec& s) { return v.Number(s.target.emplace()); },
     {[](const StudySpec& s) { return s.target ? JsonOf(*s.target) : Json(); }},
     {"end when a trial reports this value or a better one", "none"}},
    {"max_concurrent_trials",
     [](const KeyValue& v, StudySpec& s) {
       return v.Integer(1, kMaxCount, s.max_concurrent_trials);
     },
     {[](const StudySpec& s) { return Unless0(s.max_concurrent_trials); }},
     {"run at most this many trials at once", "as many as slots allow"}},
    {"max_step",
     [](const KeyValue& v, StudySpec& s) { return v.Integer(1, kMaxCount, s.max_step); },
     {[](const StudySpec& s) { return Unless0(s.max_step); }},
     {"the last step that a trial reports; makes pruning and promise more exact, and a trial that "
      "has reported it is not pruned",
      "unknown"}},
    {"promise",
     ReadPromise,
     {[](const StudySpec& s) {
       return Json{{"best_k", s.best_k}};
     }},
     {R"(`{"best_k": 3}`: a trial's promise is its chance to end among the study's best 3; )"
      "shown, and used by pruners and policies",
      "best 1"}},
    {"slots",
     ReadSlots,
     {SlotsJson},
     {R"(of one trial: `{"min": ..., "max": ...}`, one integer for both, or a list of the only )"
      "sizes that it may have, like `[2, 4, 8]`. A program that is not elastic has the least "
      "number, and the GPUs of all of them",
      "from 1 to the whole pool"}},
    {"slots_per_node",
     [](const KeyValue& v, StudySpec& s) { return v.Integer(1, kMaxSlots, s.slots_per_node); },
     {[](const StudySpec& s) { return Unless0(std::int64_t{s.slots_per_node}); }},
     {"so many slots of one trial may be on one machine", "all"}},
    {"resize",
     ReadResize,
     {[](const StudySpec& s) { return Json(s.resize_by_restart ? "restart" : "elastic"); }},
     {"`restart`: a program that is not elastic, and goes on from a checkpoint that it keeps, is "
      "[started again](../../docs/existing_scripts.md#several-gpus) on another number of `slots` "
      "where that pays; `elastic`: elastic programs are resized, others keep what they started "
      "with",
      "`elastic`"}},
    {"launch",
     ReadLaunch,
     {LaunchJson},
     {"what starts a rank for each slot of a trial, each of which runs the command: `torchrun`, "
      R"(`accelerate`, `deepspeed` or `ranks`, or a list with options: `["accelerate", )"
      R"("--mixed_precision=bf16"]`; or `nodes`, a process for each machine; see [launchers](../../docs/launchers.md))",
      "none: a program that is not elastic is one process, which has all slots"}},
    {"share",
     [](const KeyValue& v, StudySpec& s) {
       return v.Range("a number", kMinShare, kMaxShare, s.share);
     },
     {[](const StudySpec& s) { return JsonOf(s.share); }},
     {"the study's share of the pool relative to other studies, by goodput: 2 gets twice as much "
      "as 1",
      "1"}},
    {"batch_mode",
     ReadBatchMode,
     {[](const StudySpec& s) {
       return Json(s.batch_mode == BatchMode::kAdaptive ? "adaptive" : "fixed");
     }},
     {"`fixed`: resizing keeps the global batch; `adaptive`: the batch grows by goodput and "
      "scaling rule, and pruners and promise compare trials at equal progress, in steps of a "
      "trial at the initial batch. With a parameter `batch_size` in the search space only `fixed` "
      "is allowed",
      "`fixed`"}},
    {"seed",
     ReadSeed,
     {[](const StudySpec& s) { return Json(s.seed); }},
     {"the seed of all random draws, 0 to 2^64 - 1", "0"}},
    {"max_consecutive_failures",
     [](const KeyValue& v, StudySpec& s) {
       return v.Integer(1, kMaxCount, s.max_consecutive_failures);
     },
     {[](const StudySpec& s) { return Json(s.max_consecutive_failures); }},
     {"the study fails after this many failed trials in a row, at least 1; it also fails if all "
      "of its trials have failed by its end",
      "5"}},
    {"max_restarts",
     [](const KeyValue& v, StudySpec& s) { return v.Integer(0, kMaxCount, s.max_restarts); },
     {[](const StudySpec& s) { return Json(s.max_restarts); }},
     {"restarts of one trial after all its replicas failed: from its checkpoint, or, at most "
      "twice, from the beginning if it had trained and was killed by a signal before it had one",
      "2"}},
    {"stragglers",
     ReadStragglers,
     {[](const StudySpec& s) { return Json(s.replace_stragglers ? "replace" : "ignore"); }},
     {"`replace`: a replica that needs over 1.5 times as long for a step as the others, for "
      "several seconds in a row, is replaced if a slot is free, or removed if the others are "
      "faster alone; `ignore`",
      "`replace`"}},
    {"stop_grace_s",
     [](const KeyValue& v, StudySpec& s) {
       return v.Range("seconds", 0, kMaxTime_s, s.stop_grace_s);
     },
     {[](const StudySpec& s) { return JsonOf(s.stop_grace_s); }},
     {"seconds between SIGTERM and SIGKILL", "5"}},
    {kTimeoutKeys[0].key,
     ReadTimeout<0>,
     {TimeoutJson<0>},
     {"seconds within which a process that will join an elastic trial's group must be ready, with "
      "its data loaded and its model built. This key, and the next four, are at least 1; absent, "
      "they are [the pool's](../../docs/elastic_training_loop.md#how-long-things-may-take)",
      "600"}},
    {kTimeoutKeys[1].key,
     ReadTimeout<1>,
     {TimeoutJson<1>},
     {"seconds without progress after which forming a group, or handing over its state, is "
      "abandoned and started again",
      "30"}},
    {kTimeoutKeys[2].key,
     ReadTimeout<2>,
     {TimeoutJson<2>},
     {"seconds within which a pausing group must reach its next step, save a checkpoint and leave; "
      "likewise a program that asks [whether to save]"
      "(../../docs/existing_scripts.md#saving-when-asked)",
      "300"}},
    {kTimeoutKeys[3].key,
     ReadTimeout<3>,
     {TimeoutJson<3>},
     {"seconds within which an elastic trial's processes must exit after its end, or after "
      "another of them exits; with `launch`, how long ranks may run on when one has ended with 0",
      "60; with `launch` 600"}},
    {kTimeoutKeys[4].key,
     ReadTimeout<4>,
     {TimeoutJson<4>},
     {"seconds before the removal of a node in which trials save and leave it; if the notice is "
      "short, half of it",
      "120"}},
    {"env",
     ReadVariables,
     {[](const StudySpec& s) { return Json(s.environment); }},
     {"environment variables of the trials, strings or numbers by name", "none"}},
    {"preload",
     ReadModules,
     {[](const StudySpec& s) { return s.preload ? Json(*s.preload) : Json(false); }},
     {"modules that are imported once for all processes of programs in Python, beside `torch`: "
      R"(`["transformers"]`; [they are forked](../../docs/python.md#starting). `false`: each )"
      "process has an interpreter of its own, and programs in C++ are [not "
      "forked](../../docs/elastic_training_loop.md#starting-replicas-quickly), whatever "
      "`ESPALIER_FORK` is. With `launch` a list that is not "
      "empty has [ranks or their launcher forked](../../docs/launchers.md#ranks-that-are-forked)",
      "`[]`"}},
    {"needs",
     ReadNeeds,
     {[](const StudySpec& s) { return Json(s.needs); }, KeyText::kByField},
     {"files that trials read, each with the command to run if it is missing: "
      R"(`{"/usr/share/x": "apt-get install x"}`. `tuner run` refuses to start without them)",
      "none"}},
    {"directory",
     ReadDirectory,
     {[](const StudySpec& s) { return Json(s.directory); }, KeyText::kAlwaysByField},
     {"the trials' working directory, taken from this file's folder; in a pool it must exist on "
      "every machine",
      "this file's folder"}},
    {"ask_and_tell",
     ReadAskAndTell,
     {[](const StudySpec& s) { return Json(s.by_clients()); }},
     {"`true`: clients create, run and end the trials, by Optuna's storage protocol or by "
      "[HTTP](../../docs/http.md). There is no `command`; `search_space` with `sampler`, `pruner` "
      "and the limits apply to clients that ask the service for trials, and the name may be any "
      "text",
      "`false`"}},
    {"directions",
     ReadDirections,
     {DirectionsJson},
     {R"(with `ask_and_tell`, instead of `metric`: `["minimize", "maximize"]`, one for each )"
      "final value of a trial",
      "one, minimized"}},
}};

}  // namespace

std::span<const StudyKey> StudyKeys() { return kStudyKeys; }

absl::Status ReadName(const KeyValue& value, StudySpec& spec) {
  // Other tools' users name their studies as they like.
  if (value.file().ByClients() && value.json().is_string()) {
    spec.name = value.Word();
    return absl::OkStatus();
  }
  ESPALIER_RETURN_IF_ERROR(value.Text(kMaxNameBytes, spec.name));
  if (IsPlainName(spec.name)) return absl::OkStatus();
  return value.Needs("letters, digits, \"_\", \"-\" and \".\", the first a letter, digit or \"_\"");
}

}  // namespace espalier
