// `tuner serve`: the service of a pool.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_join.h"
#include "adapters/adaptdl/frontend.h"
#include "adapters/optuna/dashboard/server.h"
#include "base/open_files.h"
#include "tuner/cli/frontends.h"
#include "tuner/cli/interrupts.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/cli/options/engine_options.h"
#include "tuner/cli/options/optuna_options.h"
#include "tuner/cli/options/plugin_argument.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/options/timeout_options.h"
#include "tuner/cli/options/web_options.h"
#include "tuner/cli/served_page.h"
#include "tuner/cli/verb.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/access/service_credentials.h"
#include "tuner/server/service.h"

namespace espalier {
namespace {

constexpr double kIdleWait_s = 3600;  // between looks at whether it was interrupted

struct ServeArguments {
  ServeArguments() { options.grpc_address = kDefaultService; }

  ServiceOptions options;
  optuna_dashboard::Options dashboard;
  EngineArguments engine;
  std::string token_file;
  std::string policy = StudySpec{}.policy.name;
};

// What nodes that the service starts itself show: where it can be reached from other machines, or
// takes nobody's word but a token, what agents there show.
std::string NodeTokenFile(const ServeArguments& arguments, const ServiceOptions& options) {
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.grpc_address);
  const bool by_kernel = address.ok() && address->loopback() && !options.no_loopback_trust;
  if (!address.ok() || by_kernel) return arguments.token_file;
  return options.credentials_folder + "/join.token";
}

// For a service without tokens of its own: on loopback, or with a shared token.
void PrintPlainJoin(const Service& service, const ServeArguments& arguments,
                    const ServiceOptions& options) {
  std::string line = fmt::format("to join: tuner agent --join {} --slots N",
                                 NameFromElsewhere(service.grpc_address()));
  if (!arguments.token_file.empty()) line += " --token-file " + arguments.token_file;
  if (options.tls.on()) line += " --tls-ca CA.pem";
  std::printf("%s\n", line.c_str());
}

void PrintEndpoints(const Service& service, const ServeArguments& arguments,
                    const ServiceOptions& options) {
  std::printf("gRPC %s\n", service.grpc_address().c_str());
  if (const std::string http = service.http_address(); !http.empty()) {
    std::printf("HTTP %s%s\n", service.scheme(http).c_str(), http.c_str());
    std::printf("page %s\n", absl::StrJoin(PageLines(service.page()), "\n     ").c_str());
  } else {
    std::printf("page none: it comes with --http HOST:PORT\n");
  }
  if (const std::string dashboard = service.dashboard_address(); !dashboard.empty()) {
    std::printf("dashboard %s%s/dashboard\n", service.scheme(dashboard).c_str(), dashboard.c_str());
  }
  const ServiceCredentials& credentials = service.credentials();
  if (credentials.join_token.empty()) {
    if (options.engine == nullptr) PrintPlainJoin(service, arguments, options);
    return;
  }
  if (options.plaintext && !options.tls.on()) {
    std::printf("%s\n", kInTheClear);
  }
  const std::string grpc = NameFromElsewhere(service.grpc_address());
  const std::string agent = fmt::format("tuner agent --join {} --slots N --token-file join.token{}",
                                        grpc, options.tls.on() ? " --tls-ca CA.pem" : "");
  // Others may read what is not a terminal: logs of services, jobs and pods.
  if (options.engine == nullptr && isatty(STDOUT_FILENO)) {
    std::printf("to join: (umask 077; echo %s > join.token) && %s\n",
                credentials.join_token.c_str(), agent.c_str());
  } else if (options.engine == nullptr) {
    std::printf("to join: copy %s to the machine, for its user alone, and there: %s\n",
                credentials.join_token_file.c_str(), agent.c_str());
  }
  std::printf("to administer: tuner ls --service %s --token-file %s\n", grpc.c_str(),
              credentials.administer_token_file.c_str());
}

absl::Status CheckTimes(const ServiceOptions& options) {
  const auto refuse = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  if (!(options.lease_s > 0)) {
    return refuse(fmt::format("--lease {}: must be more than 0 seconds", options.lease_s));
  }
  const ClientLease& lease = options.client_lease;
  if (!(lease.seconds >= 0) || std::isinf(lease.seconds)) {
    return refuse(fmt::format("--client-lease {}: must be seconds, or 0 for none", lease.seconds));
  }
  if (lease.max_retries < 0 || (lease.max_retries > 0 && lease.seconds == 0)) {
    return refuse(fmt::format("--client-retries {}: must be 0 or more, and needs --client-lease",
                              lease.max_retries));
  }
  if (!(options.slot_lease_s > 0)) {
    return refuse(
        fmt::format("--slot-lease {}: must be more than 0 seconds", options.slot_lease_s));
  }
  return CheckTimeouts(options.timeouts);
}

ExitCode Serve(const ServeArguments& arguments) {
  ServiceOptions options = arguments.options;
  if (const absl::Status times = CheckTimes(options); !times.ok()) {
    return Fail("serve", ExitCode::kBadInput, std::string(times.message()));
  }
  const absl::StatusOr<ProxiedAt> proxied = ResolveProxy(options.proxied);
  if (!proxied.ok()) return Fail("serve", proxied.status());
  options.proxied = *proxied;
  if (const absl::Status optuna = ResolveOptuna(options.optuna); !optuna.ok()) {
    return Fail("serve", ExitCode::kBadInput, std::string(optuna.message()));
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
  options.tuner_program = OwnExecutable();
  options.frontends = AllFrontends();
  options.start_dashboard = optuna_dashboard::Server(arguments.dashboard);
  options.credentials_folder = CredentialsFolderOf(options.database);
  const auto engine = arguments.engine.Make(NodeTokenFile(arguments, options), options);
  if (!engine.ok()) {
    return Fail("serve", ExitCode::kBadInput, std::string(engine.status().message()));
  }
  const absl::StatusOr<std::optional<ApiServer>> jobs = arguments.engine.JobServer();
  if (!jobs.ok()) return Fail("serve", ExitCode::kBadInput, std::string(jobs.status().message()));
  if (jobs->has_value()) {
    options.frontends.emplace_back([server = **jobs] { return adaptdl::MakeFrontend(server); });
  }
  RaiseLimitOfOpenFiles();
  IgnoreBrokenPipes();
  const Interrupts interrupts;
  if (*engine != nullptr) {
    const absl::Status turn = (*engine)->AwaitTurn([&interrupts](double seconds) {
      if (!interrupts.interrupted()) interrupts.Wait(seconds);
      return !interrupts.interrupted();
    });
    if (interrupts.interrupted()) return ExitCode::kOk;
    if (!turn.ok()) return Fail("serve", ExitCode::kBadInput, std::string(turn.message()));
  }
  const absl::StatusOr<std::unique_ptr<Service>> service = Service::Start(options);
  if (!service.ok()) {
    return Fail("serve", ExitCode::kBadInput, std::string(service.status().message()));
  }
  if (*engine != nullptr) {
    (*engine)->Open(NameFromElsewhere((*service)->grpc_address()),
                    NameFromElsewhere((*service)->http_address()));
  }
  PrintEndpoints(**service, arguments, options);
  std::printf("database %s\n", options.database.c_str());
  std::fflush(stdout);
  while (!interrupts.interrupted()) interrupts.Wait(kIdleWait_s);
  // While the service answers: trials leave their nodes with a checkpoint.
  if (*engine != nullptr) arguments.engine.keeps_nodes() ? (*engine)->Leave() : (*engine)->Stop();
  (*service)->Shutdown();
  return ExitCode::kOk;
}

// Who may do what, and what others on the network see of it.
void AddAccess(CliCommand& command, ServeArguments& arguments) {
  command.AddOption(
      "--token-file", arguments.token_file,
      "File with one token that everybody must present, even on loopback, and that permits "
      "everything (default: none; `tuner token` creates tokens with a role each)");
  command.AddFlag(
      "--plaintext", arguments.options.plaintext,
      "Do not encrypt on addresses other than loopback. Without this option or --tls-cert, the "
      "service makes a certificate for them, and its tokens carry the certificate's hash");
  command.AddFlag("--open-loopback", arguments.options.open_loopback,
                  "Give every user of this machine the rights of the service's own user: they can "
                  "then run commands as any user who runs an agent");
  command.AddFlag("--no-loopback-trust", arguments.options.no_loopback_trust,
                  "Let nobody in without a token, not even the service's own user on loopback: for "
                  "a service whose loopback others share, as in pods and containers. It makes its "
                  "tokens on loopback, too (DB.credentials/administer.token)");
  CliOption& key = command.AddOption("--tls-key", arguments.options.tls.key,
                                     "PEM file with the private key of --tls-cert");
  CliOption& certificate =
      command
          .AddOption(
              "--tls-cert", arguments.options.tls.certificate,
              "Use TLS on all addresses: PEM file with the service's certificate and its chain")
          .Needs(key);
  key.Needs(certificate);
}

// Times of silence after which what others hold is taken to be lost.
void AddLeases(CliCommand& command, ServiceOptions& options) {
  command
      .AddOption("--lease", options.lease_s,
                 "Seconds without a message from an agent after which its trials count as lost")
      .ShowDefault();
  command.AddOption(
      "--client-lease", options.client_lease.seconds,
      "Seconds without a write after which a trial that a client runs, of Optuna or over HTTP, "
      "counts as failed (default: no limit)");
  command
      .AddOption("--client-retries", options.client_lease.max_retries,
                 "With --client-lease: how many times such a trial is enqueued again, with the "
                 "same parameters")
      .ShowDefault();
  command
      .AddOption(
          "--slot-lease", options.slot_lease_s,
          "Seconds without a renewal after which a client, of Optuna or over HTTP, loses the "
          "slots that it holds for a trial")
      .ShowDefault();
}

}  // namespace

VerbAction AddServe(CliCommand& command) {
  auto a = std::make_shared<ServeArguments>();
  command.AddOption("--grpc", a->options.grpc_address, "Address for agents and clients, HOST:PORT")
      .ShowDefault();
  command.AddOption("--http", a->options.http_address,
                    "Address for the page, REST, metrics and health, HOST:PORT (default: none)");
  AddProxyTo(command, a->options.proxied);
  CliOption& dashboard =
      command.AddOption("--dashboard", a->options.dashboard_address,
                        "Also serve optuna-dashboard at this address, HOST:PORT");
  command
      .AddOption("--dashboard-dir", a->dashboard.page_folder,
                 "Folder of the installed Python package optuna_dashboard, which holds the "
                 "dashboard's pages")
      .Needs(dashboard);
  command
      .AddOption(
          "--artifacts", a->dashboard.artifact_folder,
          "Folder for the trials' artifacts, laid out as by Optuna's FileSystemArtifactStore")
      .Needs(dashboard);
  command.AddOption("--db", a->options.database, "SQLite file; created if it does not exist")
      .Required();
  AddAccess(command, *a);
  AddLeases(command, a->options);
  AddTimeoutsTo(command, a->options.timeouts);
  AddOptunaTo(command, a->options.optuna);
  command
      .AddOption("--policy", a->policy,
                 "Policy that divides the pool's slots, NAME or NAME:option=value,...; a policy "
                 "set by `tuner pool --policy` takes precedence")
      .TypeName("POLICY")
      .ShowDefault();
  command.AppendToFooter(PoliciesHelp());
  a->engine.AddTo(command);
  return [a] { return Serve(*a); };
}

}  // namespace espalier
