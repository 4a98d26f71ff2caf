// `tuner serve` and `tuner agent`: the two halves of a pool.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "adapters/optuna/dashboard/server.h"
#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/replacement.h"
#include "tuner/base/clock.h"
#include "tuner/cli/agent_replacement.h"
#include "tuner/cli/doors.h"
#include "tuner/cli/engine_options.h"
#include "tuner/cli/files.h"
#include "tuner/cli/interrupts.h"
#include "tuner/cli/machine.h"
#include "tuner/cli/network_options.h"
#include "tuner/cli/node_options.h"
#include "tuner/cli/plugin_argument.h"
#include "tuner/cli/service_options.h"
#include "tuner/cli/timeout_options.h"
#include "tuner/cli/verb.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/service.h"

namespace espalier {
namespace {

constexpr double kIdleWait_s = 3600;  // between looks at whether it was interrupted
constexpr double kAgentGrace_s = 10;  // for replicas between SIGTERM and SIGKILL
constexpr double kDrainPace_s = 0.2;  // between looks at whether a node that leaves is empty

struct ServeArguments {
  ServeArguments() { options.grpc_address = kDefaultService; }

  ServiceOptions options;
  optuna_dashboard::Options dashboard;
  EngineArguments engine;
  std::string token_file;
  std::string policy = StudySpec{}.policy.name;
};

// Certificate, keys and tokens of a service lie beside its database.
std::string CredentialsFolder(const std::string& database) { return database + ".credentials"; }

// What nodes that the service starts itself show: where it can be reached from other machines, what
// agents there show.
std::string NodeTokenFile(const ServeArguments& arguments, const ServiceOptions& options) {
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.grpc_address);
  if (!address.ok() || address->loopback()) return arguments.token_file;
  return options.credentials_folder + "/join.token";
}

// Where other machines find what listens at `address`.
std::string NameFromElsewhere(const std::string& address) {
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok() || (parsed->host != "0.0.0.0" && parsed->host != "::")) return address;
  return fmt::format("{}:{}", HostName(), parsed->port);
}

void PrintDoors(const Service& service, const ServiceOptions& options) {
  std::printf("gRPC %s\n", service.grpc_address().c_str());
  if (const std::string http = service.http_address(); !http.empty()) {
    std::printf("HTTP %s%s\n", service.scheme(http).c_str(), http.c_str());
  }
  if (const std::string dashboard = service.dashboard_address(); !dashboard.empty()) {
    std::printf("dashboard %s%s/dashboard\n", service.scheme(dashboard).c_str(), dashboard.c_str());
  }
  const ServiceCredentials& credentials = service.credentials();
  if (credentials.join_token.empty()) return;
  if (options.plaintext && !options.tls.on()) {
    std::printf(
        "in the clear: tokens and commands can be read and changed by all who are on the "
        "network (--plaintext)\n");
  }
  const std::string grpc = NameFromElsewhere(service.grpc_address());
  std::printf(
      "to join: (umask 077; echo %s > join.token) && tuner agent --join %s --slots N "
      "--token-file join.token%s\n",
      credentials.join_token.c_str(), grpc.c_str(), options.tls.on() ? " --tls-ca CA.pem" : "");
  std::printf("to administer: tuner ls --service %s --token-file %s\n", grpc.c_str(),
              credentials.administer_token_file.c_str());
}

ExitCode Serve(const ServeArguments& arguments) {
  ServiceOptions options = arguments.options;
  if (!(options.lease_s > 0)) {
    return Fail("serve", ExitCode::kBadInput,
                fmt::format("--lease {}: must be more than 0 seconds", options.lease_s));
  }
  const ClientLease& lease = options.client_lease;
  if (!(lease.seconds >= 0) || std::isinf(lease.seconds)) {
    return Fail("serve", ExitCode::kBadInput,
                fmt::format("--client-lease {}: must be seconds, or 0 for none", lease.seconds));
  }
  if (lease.max_retries < 0 || (lease.max_retries > 0 && lease.seconds == 0)) {
    return Fail("serve", ExitCode::kBadInput,
                fmt::format("--client-retries {}: must be 0 or more, and needs --client-lease",
                            lease.max_retries));
  }
  if (!(options.slot_lease_s > 0)) {
    return Fail("serve", ExitCode::kBadInput,
                fmt::format("--slot-lease {}: must be more than 0 seconds", options.slot_lease_s));
  }
  if (const absl::Status timeouts = CheckTimeouts(options.timeouts); !timeouts.ok()) {
    return Fail("serve", timeouts);
  }
  if (!arguments.token_file.empty()) {
    const absl::StatusOr<std::string> token = ReadToken(arguments.token_file);
    if (!token.ok()) return Fail("serve", token.status());
    options.token = *token;
  }
  const absl::StatusOr<PluginSpec> policy = ParsePlugin("--policy", arguments.policy);
  if (!policy.ok())
    return Fail("serve", ExitCode::kBadInput, std::string(policy.status().message()));
  options.policy = *policy;
  options.doors = AllDoors();
  options.start_dashboard = optuna_dashboard::Server(arguments.dashboard);
  options.credentials_folder = CredentialsFolder(options.database);
  const auto engine = arguments.engine.Make(NodeTokenFile(arguments, options), options);
  if (!engine.ok()) {
    return Fail("serve", ExitCode::kBadInput, std::string(engine.status().message()));
  }
  const Interrupts interrupts;
  const absl::StatusOr<std::unique_ptr<Service>> service = Service::Start(options);
  if (!service.ok()) {
    return Fail("serve", ExitCode::kBadInput, std::string(service.status().message()));
  }
  if (*engine != nullptr) {
    (*engine)->Open((*service)->grpc_address(), (*service)->http_address());
  }
  PrintDoors(**service, options);
  std::printf("database %s\n", options.database.c_str());
  std::fflush(stdout);
  while (!interrupts.interrupted()) interrupts.Wait(kIdleWait_s);
  // While the service answers: trials leave their nodes with a checkpoint.
  if (*engine != nullptr) (*engine)->Stop();
  (*service)->Shutdown();
  return ExitCode::kOk;
}

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
  if (options.service_address.find(':') == std::string::npos) {
    return absl::InvalidArgumentError("--join \"" + options.service_address +
                                      "\": must be HOST:PORT, e.g. " + kDefaultService);
  }
  if (!(arguments.drain_on_term_s >= 0) || !(arguments.drain_on_usr1_s >= 0)) {
    return absl::InvalidArgumentError("--drain-on-term and --drain-on-usr1: 0 or more seconds");
  }
  if (options.node_name.empty()) options.node_name = HostName();
  ESPALIER_RETURN_IF_ERROR(MakeDirectory(options.directory));
  options.directory = Absolute(options.directory);
  if (!options.shared_directory.empty()) {
    options.shared_directory = Absolute(options.shared_directory);
  }
  options.tuner_executable = OwnExecutable();
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
      agent.Replace(ProgramToBecome(arguments.options.directory, arguments.options.node_name),
                    OwnArguments());
    }
    interrupts.Wait(ends ? kDrainPace_s : kIdleWait_s);
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
  const absl::StatusOr<AgentOptions> options = CheckAgent(arguments);
  if (!options.ok()) return Fail("agent", options.status());
  if (arguments.check_handover) {
    const absl::Status checked = Agent::CheckTakeOver(*options);
    return checked.ok() ? ExitCode::kOk : Fail("agent", checked);
  }
  arguments.options = *options;
  const Interrupts interrupts(Hangup::kNotice);
  const absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Make(*options);
  if (!agent.ok()) {
    return Fail("agent", ExitCode::kBadInput, std::string(agent.status().message()));
  }
  std::printf("node %s with %d slots joins %s\n", options->node_name.c_str(), options->slots,
              options->service_address.c_str());
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

VerbAction AddServe(CLI::App& app) {
  auto a = std::make_shared<ServeArguments>();
  app.add_option("--grpc", a->options.grpc_address, "Address for agents and clients, HOST:PORT")
      ->capture_default_str();
  app.add_option("--http", a->options.http_address,
                 "Address for REST, metrics and health, HOST:PORT (default: none)");
  auto* dashboard = app.add_option("--dashboard", a->options.dashboard_address,
                                   "Also serve optuna-dashboard here, HOST:PORT");
  app.add_option("--dashboard-dir", a->dashboard.page_folder,
                 "Its pages: the folder of an installed Python package optuna_dashboard")
      ->needs(dashboard);
  app.add_option("--artifacts", a->dashboard.artifact_folder,
                 "Where files of trials are kept, as Optuna's FileSystemArtifactStore does")
      ->needs(dashboard);
  app.add_option("--db", a->options.database, "SQLite file; created if absent")->required();
  app.add_option("--token-file", a->token_file,
                 "File with a word that all must show, on loopback too: who shows it may do "
                 "everything (default: none; `tuner token` makes tokens for one user and role)");
  app.add_flag("--plaintext", a->options.plaintext,
               "Speak in the clear also on addresses that are not loopback, where the service else "
               "makes a certificate of its own, whose hash its tokens carry");
  app.add_flag("--open-loopback", a->options.open_loopback,
               "Let all users of this machine in as the service's own: they can then run commands "
               "as whoever runs an agent");
  auto* key = app.add_option("--tls-key", a->options.tls.key,
                             "PEM file with the private key of --tls-cert");
  app.add_option("--tls-cert", a->options.tls.certificate,
                 "Speak TLS on all addresses: PEM file with the service's certificate, and those "
                 "that vouch for it")
      ->needs(key);
  key->needs("--tls-cert");
  app.add_option("--lease", a->options.lease_s,
                 "Seconds of silence after which an agent's trials are taken as lost")
      ->capture_default_str();
  app.add_option("--client-lease", a->options.client_lease.seconds,
                 "Seconds without a write after which a trial that an Optuna client runs is taken "
                 "as failed (default: clients may be silent for ever)");
  app.add_option("--client-retries", a->options.client_lease.max_retries,
                 "With --client-lease: queue such a trial again so often, with its parameters")
      ->capture_default_str();
  app.add_option("--slot-lease", a->options.slot_lease_s,
                 "Seconds without a word after which an Optuna client loses the slots that it "
                 "holds for a trial")
      ->capture_default_str();
  AddTimeoutsTo(app, a->options.timeouts);
  app.add_option("--policy", a->policy,
                 "By which the slots of the pool are divided, NAME or NAME:option=value,...; one "
                 "that `tuner pool --policy` has set since stands over it")
      ->type_name("POLICY")
      ->capture_default_str();
  app.footer(app.get_footer() + PoliciesHelp());
  a->engine.AddTo(app);
  return [a] { return Serve(*a); };
}

VerbAction AddAgent(CLI::App& app) {
  auto a = std::make_shared<AgentArguments>();
  auto* join = app.add_option("--join", a->options.service_address,
                              "gRPC address of the service, HOST:PORT");
  a->node.AddTo(app);
  a->network.AddTo(app);
  app.add_option("--name", a->options.node_name,
                 "Name of this node, unique in the pool (default: the host's name)");
  app.add_option("--dir", a->options.directory, "Where logs, parameters and checkpoints go")
      ->capture_default_str();
  app.add_option("--shared-dir", a->options.shared_directory,
                 "A folder that all agents of the pool see, perhaps under other paths: checkpoints "
                 "go there, and none is copied (default: agents fetch them from one another)");
  app.add_option("--token-file", a->token_file,
                 "File with a token of the service, as its join line gives it: it also says by "
                 "which certificate the service is known");
  app.add_option("--tls-ca", a->tls_ca,
                 "PEM file of the certificates to trust instead, for a service with --tls-cert");
  app.add_option("--http", a->options.http_address,
                 "The service's HTTP address, HOST:PORT or a URL, which trials reach through this "
                 "agent (default: none)");
  app.add_flag("--spot", a->options.spot, "The machine may be taken away at short notice");
  app.add_option("--drain-on-term", a->drain_on_term_s,
                 "SIGTERM says that the machine goes away in so many seconds: trials are moved or "
                 "checkpointed first, then the agent ends (as Kubernetes and clouds end machines); "
                 "0: it ends at once")
      ->capture_default_str();
  app.add_option("--drain-on-usr1", a->drain_on_usr1_s,
                 "SIGUSR1 says that the machine goes away in so many seconds (as Slurm's "
                 "--signal=USR1@120 does, or a watcher of a cloud's notice)")
      ->capture_default_str();
  app.add_flag("--replace", a->replace,
               "Do not start an agent: have the one that runs as --name in --dir replaced by this "
               "release, with the arguments it was started with. Its trials train on. SIGHUP does "
               "the same with the program that lies where the agent was started from")
      ->excludes(join);
  app.add_option(kTakeOverOption, a->options.take_over)->group("");
  app.add_flag(kTryOption, a->check_handover)->group("");
  return [a, join] {
    if (!a->replace && join->empty()) {
      return Fail("agent", ExitCode::kBadInput, "--join is required; see tuner agent --help");
    }
    return RunAgent(*a);
  };
}

}  // namespace espalier
