#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "tuner/core/state/step.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/program_run.h"
#include "tuner/server/engines/reconciling_engine.h"

namespace espalier::engines {

namespace {

using Json = nlohmann::json;

constexpr double kJoinPatience = 3;  // start-up times, for an agent to join

// Machines of a program of the user's. It is run once for each call, with one line of JSON on its
// standard input, and answers by lines of JSON and by its exit code; docs/extending.md describes
// them.
class CommandProvider final : public MachineProvider {
 public:
  CommandProvider(std::vector<std::string> command, double limit_s, EngineCapabilities capabilities)
      : command_(std::move(command)), limit_s_(limit_s), capabilities_(capabilities) {}

  EngineCapabilities capabilities() const override { return capabilities_; }

  absl::Status Request(const MachineOrder& order) override {
    return Ask({{"verb", "request"},
                {"key", order.key},
                {"node", order.node},
                {"command", order.command},
                {"log", order.log}})
        .status();
  }

  absl::Status Release(const Machine& machine, Leave leave) override {
    return Ask({{"verb", "release"},
                {"key", machine.key},
                {"id", machine.id},
                {"now", leave == Leave::kNow}})
        .status();
  }

  absl::StatusOr<std::vector<Machine>> List(const std::string& key_prefix) override {
    ESPALIER_ASSIGN_OR_RETURN(const std::string answer,
                              Ask({{"verb", "list"}, {"prefix", key_prefix}}));
    std::vector<Machine> machines;
    std::istringstream lines(answer);
    for (std::string line; std::getline(lines, line);) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      absl::StatusOr<Machine> machine = Read(line);
      if (!machine.ok()) return machine.status();
      if (machine->key.starts_with(key_prefix)) machines.push_back(*std::move(machine));
    }
    return machines;
  }

 private:
  absl::StatusOr<std::string> Ask(const Json& question) const {
    ESPALIER_ASSIGN_OR_RETURN(
        ProgramEnd end,
        RunProgram({.command = command_, .input = question.dump() + "\n", .limit_s = limit_s_}));
    if (end.exit_code == 0) return std::move(end.output);
    return absl::UnavailableError(
        absl::StrCat(question["verb"].get<std::string>(), ": ", FailureOf(command_.front(), end)));
  }

  absl::Status Wrong(const std::string& line, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("list: \"", command_.front(), "\" answers ", line, ": ", what));
  }

  absl::StatusOr<Machine> Read(const std::string& line) const {
    const Json json = ParseJson(line);
    if (!json.is_object()) return Wrong(line, "want one JSON object a line");
    const auto text = [&json](const char* name) {
      const auto at = json.find(name);
      return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    Machine machine{
        .key = text("key"), .id = text("id"), .host = text("host"), .reason = text("reason")};
    if (machine.key.empty() || machine.id.empty()) {
      return Wrong(line, "want \"key\" and \"id\", both texts");
    }
    for (const auto& [name, state] : {std::pair{"pending", MachineState::kPending},
                                      {"running", MachineState::kRunning},
                                      {"ending", MachineState::kEnding},
                                      {"ended", MachineState::kEnded}}) {
      if (text("state") != name) continue;
      machine.state = state;
      return machine;
    }
    return Wrong(line, "want \"state\" to be pending, running, ending or ended");
  }

  const std::vector<std::string> command_;
  const double limit_s_;
  const EngineCapabilities capabilities_;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeCommand(const OptionValues& options,
                                                    const NodeAgents& agents) {
  std::vector<std::string> command = options.Texts("program");
  if (command.empty() || command.front().empty()) {
    return absl::InvalidArgumentError(
        "option \"program\" is needed: the program to ask, and once more for each argument of it");
  }
  ESPALIER_ASSIGN_OR_RETURN(NodeDirectory directory, NodeDirectory::Open(agents.directory));
  const double notice_s = options["notice_s"];
  NodeAgents with_notice = agents;
  for (const std::string& word : NoticeArguments(agents, notice_s)) {
    with_notice.arguments.push_back(word);
  }
  return std::make_unique<ReconcilingEngine>(
      std::make_unique<CommandProvider>(
          std::move(command), options["limit_s"],
          EngineCapabilities{.notice_s = notice_s,
                             .start_s = options["start_s"],
                             .queue_s = options["queue_s"],
                             .most_nodes = static_cast<int>(options.Whole("most_nodes"))}),
      std::move(with_notice), std::move(directory),
      MachineTimes{.settle_s = options["settle_s"],
                   .end_grace_s = options["end_grace_s"],
                   .join_s = std::max(MachineTimes{}.join_s, kJoinPatience * options["start_s"])});
}

}  // namespace

PluginRow<Engine, NodeAgents> CommandRow() {
  return {{.name = "command",
           .summary = "nodes are machines that your own program starts, lists and ends",
           .options = {{.name = "program",
                        .meaning = "the program; repeat the option for each argument of it",
                        .text = true,
                        .repeated = true},
                       {.name = "limit_s",
                        .default_value = 60,
                        .least = 0,
                        .most = 3600,
                        .meaning = "seconds within which it must answer"},
                       {.name = "settle_s",
                        .default_value = 10,
                        .meaning =
                            "seconds after which a machine that it accepted must be in its list"},
                       {.name = "end_grace_s",
                        .default_value = 60,
                        .meaning = "seconds that a machine gets to end before it is ended at once"},
                       {.name = "notice_s",
                        .default_value = 0,
                        .meaning = "seconds of notice before a machine is taken away; 0: none"},
                       {.name = "start_s",
                        .default_value = 60,
                        .meaning = "seconds from requesting a machine to its first replica"},
                       {.name = "queue_s",
                        .default_value = 0,
                        .meaning = "seconds that a request may wait until a machine is free"},
                       {.name = "most_nodes",
                        .default_value = kMaxEngineNodes,
                        .least = 1,
                        .most = kMaxEngineNodes,
                        .whole = true,
                        .meaning = "most machines at a time"}}},
          MakeCommand};
}

}  // namespace espalier::engines
