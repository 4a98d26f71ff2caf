#include "tuner/server/simulations/simulations.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/policies/policy.h"
#include "base/guarded.h"
#include "base/json/parse_json.h"
#include "base/private_files.h"
#include "base/shortened.h"
#include "spdlog/spdlog.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/state/refusals.h"
#include "tuner/server/engines/program_run.h"

namespace espalier {

namespace {

using AnswerJson = nlohmann::ordered_json;

constexpr int kSimulationVersion = 1;
constexpr std::size_t kMaxPluginText = 200;
constexpr std::uintmax_t kMaxResult = 8 << 20;  // bytes that a simulation writes
constexpr std::size_t kMaxError = 1000;

// What follows the name in NAME:option=value,...
absl::StatusOr<Options> OptionsIn(const std::string& text) {
  Options options;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return options;
  for (const absl::string_view option : absl::StrSplit(text.substr(colon + 1), ',')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    double value = 0;
    if (parts.first.empty() || !absl::SimpleAtod(parts.second, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("option \"", option, "\": needs name=number"));
    }
    options[parts.first] = value;
  }
  return options;
}

// Whether there is such a plug-in, with such options.
template <typename Make>
absl::Status CheckPlugin(const char* key, const std::string& text, Make make) {
  if (text.size() > kMaxPluginText) {
    return absl::InvalidArgumentError(absl::StrCat("\"", key, "\": needs a text of at most ",
                                                   kMaxPluginText, " bytes, got ", text.size()));
  }
  const absl::StatusOr<Options> options = OptionsIn(text);
  const absl::Status known =
      options.ok() ? make(text.substr(0, text.find(':')), *options).status() : options.status();
  if (known.ok()) return known;
  return absl::InvalidArgumentError(absl::StrCat("\"", key, "\": ", known.message()));
}

// A folder that is gone with all that is in it.
class OwnFolder {
 public:
  OwnFolder() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "tuner-XXXXXX").string();
    if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~OwnFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }  // empty: there is none

 private:
  std::string path_;
};

// Memory that a process really has, in bytes; 0: it is gone.
std::int64_t ResidentBytes(pid_t pid) {
  const std::string text = TextOfFile(absl::StrCat("/proc/", pid, "/statm"));
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  std::int64_t pages = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

absl::StatusOr<AnswerJson> ReadResult(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return absl::InternalError("the simulation has left no result");
  if (size > kMaxResult) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the simulation's result has more than ", kMaxResult, " bytes"));
  }
  auto json = ParseJson<AnswerJson>(TextOfFile(path));
  const bool whole = json.is_object() && json.contains("recorded") && json.contains("runs") &&
                     json["runs"].is_array() && json["runs"].size() == 1 &&
                     json["runs"][0].is_object() && json["runs"][0]["remarks"].is_array();
  if (!whole) return absl::InternalError("the simulation's result is not of its form");
  return json;
}

// What is to be known before a simulation is believed.
std::vector<std::string> Caveats(const std::string& study, bool goes_on) {
  std::vector<std::string> texts = {
      "Both are simulated with the curves and the speed that the trials had, \"as it was\" too: "
      "compare them with one another, and \"as it was\" with what was recorded.",
      "How long a step takes on slots that a trial never held is worked out from the trials that "
      "held several numbers of them; where none did, twice the slots take half the time.",
      "Trials that reported no value are left out, and no machine fails."};
  if (goes_on) {
    texts.push_back(absl::StrCat("Study \"", study,
                                 "\" has not ended: what its trials have reported by now is "
                                 "simulated, and nothing after."));
  }
  return texts;
}

}  // namespace

Simulations::Simulations(std::string program, std::string database)
    : program_(std::move(program)),
      database_(std::move(database)),
      thread_([](const auto& why) { spdlog::error("event=simulation_failed error=\"{}\"", why); }) {
}

absl::StatusOr<Simulations::Order> Simulations::OrderOf(Tuner& tuner, const std::string& study,
                                                        const SimulationWanted& wanted) const {
  if (database_.empty()) {
    return absl::FailedPreconditionError(
        "this service keeps its studies in memory, and a simulation reads them from a database's "
        "file: start the service with one (tuner serve --db FILE, tuner run without --memory)");
  }
  if (program_.empty()) {
    return absl::FailedPreconditionError(
        "this service does not know where the program `tuner` is, which simulates");
  }
  ESPALIER_RETURN_IF_ERROR(CheckPlugin("policy", wanted.policy, MakePolicy));
  if (!wanted.pruner.empty()) {
    ESPALIER_RETURN_IF_ERROR(CheckPlugin("pruner", wanted.pruner, MakePruner));
  }
  Order order{.study = study,
              .other = {wanted.policy, wanted.pruner},
              .slots = wanted.slots.value_or(0),
              .seed = wanted.seed};
  absl::Status status = absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const Study* found = view.core.state().FindStudy(study);
    if (found == nullptr) {
      status = NoStudy(study);
      return;
    }
    if (found->spec.by_clients()) {
      status = absl::FailedPreconditionError(
          absl::StrCat("study \"", study, "\": its clients run its trials, and no policy gives ",
                       "them slots: there is nothing to simulate"));
    }
    order.goes_on = found->state == StudyState::kRunning;
    order.as_it_was.policy = TextOf(view.core.PoolPolicy().value_or(found->spec.policy));
    if (!wanted.slots) order.slots = view.core.SlotsTotal();
    const std::vector<NodeView> nodes = view.core.Nodes();
    const auto up = std::count_if(nodes.begin(), nodes.end(),
                                  [](const NodeView& node) { return node.connected; });
    // Nodes of equal size are all that can be simulated.
    if (up > 0 && order.slots % up == 0) order.nodes = static_cast<int>(up);
  }));
  if (!status.ok()) return status;
  if (order.slots >= 1 && order.slots <= kMaxSimulatedSlots) return order;
  return absl::InvalidArgumentError(
      absl::StrCat("\"slots\": needs a whole number from 1 to ", kMaxSimulatedSlots, ", got ",
                   order.slots, wanted.slots ? "" : ", which is what the pool has"));
}

absl::StatusOr<std::int64_t> Simulations::Start(Tuner& tuner, const std::string& study,
                                                const SimulationWanted& wanted) {
  ESPALIER_ASSIGN_OR_RETURN(const Order order, OrderOf(tuner, study, wanted));
  const std::lock_guard lock(mutex_);
  if (busy_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("simulation ", last_, " is under way, and there is one at a time: it ends ",
                     "within ", kSimulation_s, " s"));
  }
  busy_ = true;
  const std::int64_t id = ++last_;
  simulations_[id] = {.order = order, .asked = Now()};
  while (simulations_.size() > kSimulationsKept) simulations_.erase(simulations_.begin());
  thread_.Do({.name = [id] { return absl::StrCat("simulation ", id); },
              .run = [this, id, order](const std::stop_token& stop) { Run(id, order, stop); }});
  return id;
}

void Simulations::Run(std::int64_t id, const Order& order, const std::stop_token& stop) {
  absl::StatusOr<std::string> result = absl::InternalError("the simulation could not be run");
  const absl::Status done =
      Guarded([] { return std::string("a simulation"); }, [&] { result = Simulate(order, stop); });
  if (!done.ok()) result = done;
  const std::lock_guard lock(mutex_);
  busy_ = false;
  Simulation& simulation = simulations_.at(id);
  simulation.running = false;
  if (result.ok()) {
    simulation.result = *std::move(result);
  } else {
    simulation.error = Shortened(std::string(result.status().message()), kMaxError);
  }
}

absl::StatusOr<std::string> Simulations::Simulate(const Order& order,
                                                  const std::stop_token& stop) const {
  const OwnFolder folder;
  if (folder.path().empty()) {
    return absl::ResourceExhaustedError("no folder can be made for the simulation's result");
  }
  const std::string file = folder.path() + "/lanes.json";
  const Time until = After(Now(), kSimulation_s);
  AnswerJson answer = {{"recorded", nullptr}, {"runs", AnswerJson::array()}};
  std::vector<std::string> caveats = Caveats(order.study, order.goes_on);
  for (const Order::Variant& variant : {order.as_it_was, order.other}) {
    ProgramRun run;
    run.command = std::vector<std::string>{"nice", "-n", "19", program_, "simulate", "study"};
    for (const std::string& option :
         {"--db=" + database_, "--study=" + order.study, "--policy=" + variant.policy,
          absl::StrCat("--slots=", order.slots), absl::StrCat("--nodes=", order.nodes),
          "--lanes=" + file}) {
      run.command.push_back(option);
    }
    run.limit_s = SecondsBetween(Now(), until);
    if (!variant.pruner.empty()) run.command.push_back("--pruner=" + variant.pruner);
    if (order.seed) run.command.push_back(absl::StrCat("--seed=", *order.seed));
    run.watch = [&stop](pid_t pid) {
      if (stop.stop_requested()) return ShuttingDown();
      if (ResidentBytes(pid) <= kMaxSimulationMemory) return absl::OkStatus();
      return absl::ResourceExhaustedError(absl::StrCat("the simulation takes more than ",
                                                       kMaxSimulationMemory >> 20,
                                                       " MiB of memory: the study is too large"));
    };
    const absl::StatusOr<ProgramEnd> end = RunProgram(run);
    if (absl::IsDeadlineExceeded(end.status())) {
      return absl::DeadlineExceededError(
          absl::StrCat("the simulation has not ended within ", kSimulation_s,
                       " s: the study is too large, or was too long"));
    }
    if (!end.ok()) return end.status();
    if (end->exit_code != 0) return absl::InvalidArgumentError(FailureOf(program_, *end));
    ESPALIER_ASSIGN_OR_RETURN(AnswerJson result, ReadResult(file));
    const bool first = answer["runs"].empty();
    const std::string whose = first ? "As it was: " : "With " + variant.policy + ": ";
    for (const AnswerJson& remark : result["runs"][0]["remarks"]) {
      if (remark.is_string()) caveats.push_back(whose + remark.get<std::string>());
    }
    result["runs"][0].erase("remarks");
    answer["runs"].push_back(std::move(result["runs"][0]));
    answer["recorded"] = std::move(result["recorded"]);
  }
  answer["caveats"] = caveats;
  return answer.dump();
}

absl::StatusOr<std::string> Simulations::Json(std::int64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = simulations_.find(id);
  if (found == simulations_.end()) {
    return absl::NotFoundError(absl::StrCat("simulation ", id, " is not found: the newest ",
                                            kSimulationsKept, " are kept, until the service ends"));
  }
  const Simulation& simulation = found->second;
  const Order& order = simulation.order;
  AnswerJson json = {
      {"version", kSimulationVersion},
      {"id", id},
      {"study", order.study},
      {"state", simulation.running         ? "running"
                : simulation.error.empty() ? "done"
                                           : "failed"},
      {"asked_at", Seconds(simulation.asked)},
      {"policy", order.other.policy},
      {"slots", order.slots},
      {"nodes", order.nodes},
      {"error", simulation.error.empty() ? AnswerJson(nullptr) : AnswerJson(simulation.error)}};
  if (simulation.result.empty()) {
    json.update(
        {{"recorded", nullptr}, {"runs", AnswerJson::array()}, {"caveats", AnswerJson::array()}});
    return json.dump(-1, ' ', false, AnswerJson::error_handler_t::replace);
  }
  // The result is whole members of an object already.
  std::string text = json.dump(-1, ' ', false, AnswerJson::error_handler_t::replace);
  text.back() = ',';
  return text + simulation.result.substr(1);
}

}  // namespace espalier
