// `tuner agent`: this machine's slots, for a pool.

#include "trial_runner/agent/agent.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "base/machine_address.h"
#include "base/open_files.h"
#include "trial_runner/agent/replacement.h"
#include "tuner/cli/agent_replacement.h"
#include "tuner/cli/interrupts.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/cli/options/network_options.h"
#include "tuner/cli/options/node_options.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

constexpr double kAgentIdle_s = 3600;   // between looks at whether it was interrupted
constexpr double kAgentGrace_s = 10;    // for replicas between SIGTERM and SIGKILL
constexpr double kDrainPace_s = 0.2;    // between looks at whether a node that leaves is empty
constexpr double kTokenPace_s = 5;      // between looks at whether the token's file has another one
constexpr double kReplaceAgain_s = 60;  // between replacements for it

struct AgentArguments {
  AgentArguments() { options.directory = "espalier-trials"; }

  AgentOptions options;
  NodeArguments node;
  NetworkArguments network;
  std::string token_file;
  std::string tls_ca;
  double drain_on_term_s = 0;
  double drain_on_usr1_s = 120;
  bool replace = false;
  bool check_handover = false;
};

// A directory that a child of ours can be told of.
std::string Absolute(const std::string& directory) {
  return std::filesystem::absolute(directory).lexically_normal().string();
}

absl::StatusOr<AgentOptions> CheckAgent(const AgentArguments& arguments) {
  AgentOptions options = arguments.options;
  ESPALIER_RETURN_IF_ERROR(arguments.node.Resolve(options));
  ESPALIER_RETURN_IF_ERROR(arguments.network.Resolve(options));
  ESPALIER_RETURN_IF_ERROR(CheckServiceAddress("--join", options.service_address));
  if (const std::string& http = options.http_address;
      !http.empty() && http.find("://") == std::string::npos && !ParseHostPort(http).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--http \"", http, "\": must be HOST:PORT or a URL, such as https://10.0.0.1:7078"));
  }
  for (const auto& [option, seconds] : {std::pair("--drain-on-term", arguments.drain_on_term_s),
                                        std::pair("--drain-on-usr1", arguments.drain_on_usr1_s)}) {
    if (seconds >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", seconds, ": must be 0 or more seconds"));
  }
  if (options.node_name.empty()) options.node_name = HostName();
  ESPALIER_RETURN_IF_ERROR(MakeDirectory(options.directory));
  options.directory = Absolute(options.directory);
  if (!options.shared_directory.empty()) {
    options.shared_directory = Absolute(options.shared_directory);
  }
  options.tuner_executable = OwnExecutable();
  options.watched = true;
  if (!arguments.token_file.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(options.token, ReadToken(arguments.token_file));
    options.token_file = std::filesystem::absolute(arguments.token_file).string();
  }
  if (!arguments.tls_ca.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(options.tls_roots, ReadCertificates(arguments.tls_ca));
    options.tls_ca_file = std::filesystem::absolute(arguments.tls_ca).string();
  }
  return options;
}

// The service has made its credentials anew, and the file has been brought up to date (an engine
// does so by itself), while the agent still shows the token that it has read at its start.
class TokenWatch {
 public:
  explicit TokenWatch(const AgentOptions& options)
      : file_(options.token_file), shown_(options.token) {}

  bool any() const { return !file_.empty(); }
  // Whether the file holds another token; said once a minute, since what came of it may fail.
  bool Changed() {
    if (!any() || Now() < next_) return false;
    const absl::StatusOr<std::string> token = ReadToken(file_);
    if (!token.ok() || *token == shown_) return false;
    next_ = After(Now(), kReplaceAgain_s);
    return true;
  }

 private:
  const std::string file_;
  const std::string shown_;
  Time next_{};
};

// Until the agent is to stop: refused by its pool, interrupted, or told that its machine goes away
// and then empty or out of time.
void ServeUntilTheEnd(Agent& agent, const AgentArguments& arguments, const Interrupts& interrupts,
                      const std::atomic<bool>& refused) {
  std::optional<Time> ends;
  const auto leave = [&](double within_s) {
    std::printf("the machine goes away in %.0f s: emptying this node\n", within_s);
    std::fflush(stdout);
    agent.LeaveWithin(within_s);
    const Time then = After(Now(), within_s);
    ends = ends ? std::min(*ends, then) : then;
  };
  bool noticed = false;
  bool terminated = false;
  int hangups = 0;
  TokenWatch token(arguments.options);
  const auto replace = [&] {
    agent.Replace(ProgramToBecome(arguments.options.directory, arguments.options.node_name),
                  OwnArguments());
  };
  while (!refused && (!ends || (Now() < *ends && !agent.empty()))) {
    if (interrupts.interrupted() && !terminated) {
      terminated = interrupts.terminated() && arguments.drain_on_term_s > 0;
      if (!terminated) return;
      leave(arguments.drain_on_term_s);
    }
    if (interrupts.noticed() && !noticed) {
      noticed = true;
      leave(arguments.drain_on_usr1_s);
    }
    if (interrupts.hangups() > hangups) {
      hangups = interrupts.hangups();
      replace();
    }
    if (!agent.connected() && token.Changed()) {
      std::printf("%s holds another token now: the agent reads it again, its replicas train on\n",
                  arguments.options.token_file.c_str());
      std::fflush(stdout);
      replace();
    }
    interrupts.Wait(ends ? kDrainPace_s : token.any() ? kTokenPace_s : kAgentIdle_s);
  }
}

ExitCode ReplaceAgent(const AgentArguments& arguments) {
  const std::string node =
      arguments.options.node_name.empty() ? HostName() : arguments.options.node_name;
  const absl::Status replaced = ReplaceRunningAgent(Absolute(arguments.options.directory), node);
  return replaced.ok() ? ExitCode::kOk : Fail("agent", replaced);
}

ExitCode RunAgent(AgentArguments arguments) {
  if (arguments.replace) return ReplaceAgent(arguments);
  RaiseLimitOfOpenFiles();
  const absl::StatusOr<AgentOptions> options = CheckAgent(arguments);
  if (!options.ok()) return Fail("agent", options.status());
  if (arguments.check_handover) {
    const absl::Status checked = Agent::CheckTakeOver(*options);
    return checked.ok() ? ExitCode::kOk : Fail("agent", checked);
  }
  arguments.options = *options;
  IgnoreBrokenPipes();
  const Interrupts interrupts(Hangup::kNotice);
  const absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Make(*options);
  if (!agent.ok()) {
    return Fail("agent", ExitCode::kBadInput, std::string(agent.status().message()));
  }
  std::printf("node %s with %s joins %s\n", options->node_name.c_str(),
              Count(options->slots, "slot").c_str(), options->service_address.c_str());
  std::fflush(stdout);
  std::atomic<bool> refused = false;
  std::thread signals([&] {
    ServeUntilTheEnd(**agent, arguments, interrupts, refused);
    (*agent)->Stop(kAgentGrace_s);
  });
  // This thread starts the replicas: it is the one that lives on when the agent is replaced.
  const absl::Status ended = (*agent)->Run();
  refused = !ended.ok();
  interrupts.Wake();
  signals.join();
  return ended.ok() ? ExitCode::kOk
                    : Fail("agent", ExitCode::kBadInput, std::string(ended.message()));
}

}  // namespace

VerbAction AddAgent(CliCommand& command) {
  auto a = std::make_shared<AgentArguments>();
  CliOption& join = command.AddOption("--join", a->options.service_address,
                                      "gRPC address of the service, HOST:PORT");
  a->node.AddTo(command);
  a->network.AddTo(command);
  command.AddOption("--name", a->options.node_name,
                    "Name of this node, unique in the pool (default: the host's name)");
  command.AddOption("--dir", a->options.directory, "Folder for logs, parameters and checkpoints")
      .ShowDefault();
  command.AddOption(
      "--shared-dir", a->options.shared_directory,
      "A folder that all agents of the pool share, perhaps under different paths: checkpoints go "
      "there and are not copied (default: agents fetch them from one another)");
  command.AddOption(
      "--token-file", a->token_file,
      "File with the token that `tuner serve` prints for agents; it carries the hash of "
      "the service's certificate");
  command.AddOption("--tls-ca", a->tls_ca,
                    "PEM file of the certificates to trust instead, for a service with --tls-cert");
  command.AddOption("--http", a->options.http_address,
                    "The service's HTTP address, HOST:PORT or a URL, for trials, which reach it "
                    "through this agent (default: none). A service that listens on all addresses "
                    "speaks TLS on loopback, too: give https://127.0.0.1:PORT there");
  command.AddFlag("--spot", a->options.spot, "The machine may be taken away at short notice");
  command
      .AddOption(
          "--drain-on-term", a->drain_on_term_s,
          "On SIGTERM, as Kubernetes and clouds send it, or when its terminal is closed, the "
          "machine goes away in this many seconds: trials move or save a checkpoint first, "
          "then the agent ends; 0: it ends at once")
      .ShowDefault();
  command
      .AddOption("--drain-on-usr1", a->drain_on_usr1_s,
                 "On SIGUSR1, as Slurm's --signal=USR1@120 or a script that watches for a cloud's "
                 "notice sends it, the machine goes away in this many seconds")
      .ShowDefault();
  command
      .AddFlag("--replace", a->replace,
               "Do not start an agent, but replace the one that runs as --name in --dir by this "
               "release, with the arguments it was started with; its trials train on. SIGHUP does "
               "the same, with the program at the path from which the agent was started")
      .Excludes(join);
  command.AddOption(kTakeOverOption, a->options.take_over).Group("");
  command.AddFlag(kTryOption, a->check_handover).Group("");
  return [a, &join] {
    if (!a->replace && !join.given()) {
      return Fail("agent", ExitCode::kBadInput, "--join is required; see tuner agent --help");
    }
    return RunAgent(*a);
  };
}

}  // namespace espalier
