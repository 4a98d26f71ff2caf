#include "tuner/server/service.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/policies/policy.h"
#include "base/check.h"
#include "grpcpp/impl/service_type.h"
#include "spdlog/spdlog.h"
#include "tuner/core/studies/validate.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/browser_sessions.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/disk_watch.h"
#include "tuner/server/grpc/agents.h"
#include "tuner/server/grpc/grpc_service.h"
#include "tuner/server/http/event_streams.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/http/http_server.h"
#include "tuner/server/log.h"
#include "tuner/server/loop/loop.h"
#include "tuner/server/loop/metrics.h"
#include "tuner/server/optuna/optuna_samplers.h"
#include "tuner/server/simulations/simulations.h"
#include "tuner/storage/storage.h"
#include "tuner/web/feed/revision_log.h"

namespace espalier {

namespace {

// Answers to pages are megabytes, made on many threads. glibc's limit for what is mapped by itself
// grows with each such block that is freed, and what lies below it stays with the thread: 25 MB
// after ten pages of 100,000 trials, 3 MB with a limit that stays. Whoever has set
// MALLOC_MMAP_THRESHOLD_ knows better; the same limit in GLIBC_TUNABLES is not asked for.
void GiveBackFreedMemory() {
#ifdef __GLIBC__
  constexpr int kLargestBlock = 128 << 10;  // bytes; as glibc begins
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) mallopt(M_MMAP_THRESHOLD, kLargestBlock);
#endif
}

absl::StatusOr<ListenAddress> CheckAddress(const std::string& text, const ServiceOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
  if (!address.loopback() && options.token.empty() && options.credentials_folder.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("address \"", text,
                     "\" can be reached from other machines: give a token, or "
                     "listen on 127.0.0.1"));
  }
  return address;
}

void WarnOfPlaintext(const ListenAddress& address) {
  spdlog::warn(
      "event=plaintext address={} reason=\"whoever is on the network reads and changes what is "
      "said, tokens too\" remedy=\"let tuner serve make a certificate (without --plaintext), or "
      "give it --tls-cert\"",
      address.text());
}

// The policy that a client has set stands over the one that the service is started with.
absl::Status CheckPolicy(const PluginSpec& policy, const TunerState& state) {
  ESPALIER_RETURN_IF_ERROR(MakePolicy(policy.name, policy.options).status());
  const PluginSpec followed = state.policy.value_or(policy);
  if (followed != policy) {
    spdlog::warn(
        "event=policy_kept policy=\"{}\" instead_of=\"{}\" reason=\"set by tuner pool "
        "--policy before; the same command changes it\"",
        TextOf(followed), TextOf(policy));
  }
  return absl::OkStatus();
}

constexpr std::size_t kIncarnationBytes = 8;

class ServiceImpl final : public Service {
 public:
  explicit ServiceImpl(const ServiceOptions& options) : agents_(options.lease_s, Now) {
    for (const MakeFrontend& make : options.frontends) frontends_.push_back(make());
  }
  ~ServiceImpl() override { Shutdown(); }

  absl::Status Open(const ServiceOptions& options) {
    ESPALIER_ASSIGN_OR_RETURN(const Addresses addresses, CheckOptions(options));
    std::unique_ptr<Storage> storage;
    if (options.database.empty()) {
      storage = MakeMemoryStorage();
    } else {
      ESPALIER_ASSIGN_OR_RETURN(storage, OpenSqliteStorage(options.database));
    }
    ESPALIER_ASSIGN_OR_RETURN(TunerState state, storage->Load());
    for (const std::string& cut : CutFractions(state)) {
      spdlog::warn("event=fraction_cut what=\"{}\"", cut);
    }
    // After the database is open: only the service that has it makes what is missing.
    const bool reachable = addresses.reachable();
    ESPALIER_ASSIGN_OR_RETURN(credentials_,
                              PrepareCredentials({options.credentials_folder, options.tls,
                                                  options.plaintext, options.no_loopback_trust},
                                                 reachable));
    access_ = std::make_unique<AccessControl>(
        AccessControlOptions{.shared_token = options.token,
                             .open_loopback = options.open_loopback,
                             .no_loopback_trust = options.no_loopback_trust,
                             .trial_key = credentials_.trial_key,
                             .own_token_file = credentials_.own_user_token_file()});
    access_->Load(state);
    // Before anything is started that would have to be stopped.
    Certificates certificates;
    ESPALIER_ASSIGN_OR_RETURN(certificates.grpc, ReadTls(credentials_.TlsAt(addresses.grpc)));
    ESPALIER_ASSIGN_OR_RETURN(certificates.http, ReadTls(credentials_.TlsAt(addresses.http)));
    ESPALIER_ASSIGN_OR_RETURN(certificates.dashboard,
                              ReadTls(credentials_.TlsAt(addresses.dashboard)));

    if (options.policy) ESPALIER_RETURN_IF_ERROR(CheckPolicy(*options.policy, state));
    for (const auto& frontend : frontends_) frontend->Load(state);
    StartLoop(options, std::move(storage), std::move(state));
    const bool by_tokens = reachable || options.no_loopback_trust;
    if (by_tokens && !options.credentials_folder.empty()) {
      ESPALIER_RETURN_IF_ERROR(
          PrepareTokens(options.credentials_folder, *access_, *loop_, credentials_));
    }
    ESPALIER_RETURN_IF_ERROR(Listen(options, addresses, certificates));
    for (const auto& frontend : frontends_) frontend->Start(*loop_);
    spdlog::info("event=service_started grpc={} http={} dashboard={} database=\"{}\"",
                 grpc_address_, http_address_, dashboard_address_, options.database);
    return absl::OkStatus();
  }

  std::string grpc_address() const override { return grpc_address_; }
  std::string http_address() const override { return http_address_; }
  std::string dashboard_address() const override { return dashboard_address_; }
  ServedPage page() const override { return page_known_.load() ? page_ : ServedPage{}; }

  const ServiceCredentials& credentials() const override { return credentials_; }
  std::string scheme(const std::string& address) const override {
    const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
    return parsed.ok() && credentials_.TlsAt(*parsed).on() ? "https://" : "http://";
  }

  Tuner& tuner() override { return *loop_; }

  void Shutdown() override {
    const std::lock_guard lock(shutdown_mutex_);
    if (loop_) loop_->EndWaits();
    for (const auto& frontend : frontends_) frontend->Close();
    // Frontends first, while the loop still answers the calls under way; then what they posted is
    // committed, and the database closed.
    if (http_) http_->Stop();
    if (streams_) streams_->Stop();
    if (simulations_) simulations_->Stop();
    if (dashboard_) dashboard_->Stop();
    agents_.Stop();
    if (grpc_) grpc_->Stop();
    if (loop_) loop_->Stop();
    if (optuna_) optuna_->Stop();
  }

 private:
  // Those that are not listened at are on loopback.
  struct Addresses {
    ListenAddress grpc;
    ListenAddress http{{"localhost", 0}};
    ListenAddress dashboard{{"localhost", 0}};

    bool reachable() const { return !grpc.loopback() || !http.loopback() || !dashboard.loopback(); }
  };

  // Empty: the endpoint speaks in the clear.
  struct Certificates {
    Certificate grpc;
    Certificate http;
    Certificate dashboard;
  };

  // Before anything is opened or written.
  static absl::StatusOr<Addresses> CheckOptions(const ServiceOptions& options) {
    if (!(options.lease_s > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("lease_s must be more than 0, got ", options.lease_s));
    }
    if (options.token.size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(absl::StrCat("--token-file: a token has at most ",
                                                     kMaxTokenBytes, " bytes, and this one has ",
                                                     options.token.size()));
    }
    if (options.no_loopback_trust && options.open_loopback) {
      return absl::InvalidArgumentError(
          "--open-loopback lets in all users of this machine, and --no-loopback-trust none of them "
          "without a token: leave one of them out");
    }
    if (options.no_loopback_trust && options.credentials_folder.empty() && options.token.empty()) {
      return absl::InvalidArgumentError(
          "--no-loopback-trust lets nobody in without a token, and this service has neither a "
          "folder to make one in nor a shared one");
    }
    Addresses addresses;
    ESPALIER_ASSIGN_OR_RETURN(addresses.grpc, CheckAddress(options.grpc_address, options));
    if (!options.http_address.empty()) {
      ESPALIER_ASSIGN_OR_RETURN(addresses.http, CheckAddress(options.http_address, options));
    }
    if (!options.dashboard_address.empty()) {
      ESPALIER_ASSIGN_OR_RETURN(addresses.dashboard,
                                CheckAddress(options.dashboard_address, options));
    }
    if (options.engine != nullptr) ESPALIER_RETURN_IF_ERROR(CheckPoolSize(options.pool_size));
    if (options.tls.on()) ESPALIER_RETURN_IF_ERROR(ReadTls(options.tls).status());
    return addresses;
  }

  void StartLoop(const ServiceOptions& options, std::unique_ptr<Storage> storage,
                 TunerState state) {
    LoopOptions loop_options = LoopOptionsOf(options);
    loop_options.certificate_hash = credentials_.certificate_hash;
    loop_ = std::make_unique<Loop>(std::move(storage), std::move(state), std::move(loop_options),
                                   metrics_,
                                   [this](const std::vector<Command>& commands,
                                          const TunerState& now) { agents_.Send(commands, now); });
    agents_.Start(
        *loop_,
        [this](TrialId trial, ReplicaId replica) {
          return access_->TrialToken(trial, replica, credentials_.certificate_hash);
        },
        [this](const Membership& group) { return access_->GroupSecret(group); });
  }

  absl::Status Listen(const ServiceOptions& options, const Addresses& addresses,
                      const Certificates& certificates) {
    if (!options.http_address.empty()) {
      sessions_ =
          std::make_unique<BrowserSessions>(access_->CookieName(), !certificates.http.pem.empty());
    }
    GrpcPlace place{.address = addresses.grpc,
                    .tls = certificates.grpc,
                    .access = *access_,
                    .tuner = *loop_,
                    .agents = agents_,
                    .metrics = metrics_,
                    .of_frontends = GrpcServicesOfFrontends(),
                    .sessions = sessions_.get()};
    const StartGrpc start = options.start_grpc ? options.start_grpc : StartGrpc(GrpcServer::Start);
    ESPALIER_ASSIGN_OR_RETURN(grpc_, start(std::move(place)));
    grpc_address_ = grpc_->address();
    if (!options.dashboard_address.empty()) {
      ESPALIER_RETURN_IF_ERROR(
          OpenDashboard(addresses.dashboard, certificates.dashboard, options.start_dashboard));
    }
    if (!options.http_address.empty()) {
      streams_ = std::make_unique<EventStreams>(revisions_, *loop_);
      simulations_ = std::make_unique<Simulations>(options.tuner_program, options.database);
      ESPALIER_ASSIGN_OR_RETURN(
          http_, HttpServer::Start(addresses.http, certificates.http, *access_, Routes(), *loop_,
                                   metrics_, options.proxied, sessions_.get()));
      http_address_ = http_->address();
      page_ = {.url = absl::StrCat(scheme(http_address_), NameFromElsewhere(http_address_), "/"),
               .needs_token = !addresses.http.loopback() || options.no_loopback_trust ||
                              !options.token.empty()};
      page_known_ = true;
    }
    for (const ListenAddress& address : {addresses.grpc, addresses.http, addresses.dashboard}) {
      if (!address.loopback() && !credentials_.TlsAt(address).on()) WarnOfPlaintext(address);
    }
    return absl::OkStatus();
  }

  LoopOptions LoopOptionsOf(const ServiceOptions& options) {
    LoopOptions loop_options;
    loop_options.core.lease_s = options.lease_s;
    loop_options.core.client_lease = options.client_lease;
    loop_options.core.slot_lease_s = options.slot_lease_s;
    loop_options.core.timeouts = options.timeouts;
    loop_options.core.policy = options.policy;
    loop_options.core.plan_aside = true;
    loop_options.failed = options.failed;
    if (!options.optuna.python.empty()) {
      optuna_ = std::make_unique<OptunaSamplers>(options.optuna);
      loop_options.core.asks_outside = true;
      loop_options.ask_outside = [this](std::shared_ptr<const DrawRequest> request,
                                        OutsideAnswer answer) {
        optuna_->Ask(std::move(request), std::move(answer));
      };
      loop_options.check_sampler = [this](const StudySpec& spec) { return optuna_->Check(spec); };
    }
    if (options.engine != nullptr) {
      loop_options.core.pool_size = options.pool_size;
      loop_options.ask_engine = [engine = options.engine](const NodeRequest& request) {
        request.start ? engine->StartNode(request.name) : engine->ReleaseNode(request.name);
      };
      loop_options.tell_engine_joined = [engine = options.engine](const std::string& node) {
        engine->NodeJoined(node);
      };
      loop_options.engine_troubles = [engine = options.engine] { return engine->Troubles(); };
    }
    if (!options.database.empty()) {
      disk_.emplace(options.database, options.disk_reserve_bytes);
      loop_options.disk_troubles = [this] { return disk_->Troubles(Now()); };
    }
    loop_options.page = [this] { return page(); };
    // A service for one study alone brings its machine.
    loop_options.users_add_machines = options.engine == nullptr && options.policy.has_value();
    loop_options.read_output = [this](NodeId node, const TrialName& trial, const OutputPart& part) {
      return agents_.ReadOutput(node, trial, part);
    };
    loop_options.committed = [this](const std::vector<Change>& changes, const TunerState& now) {
      access_->Take(changes);
      if (optuna_) optuna_->Take(changes);
      revisions_.Take(changes, now);
      for (const auto& frontend : frontends_) frontend->Take(changes, now);
    };
    return loop_options;
  }

  absl::Status OpenDashboard(const ListenAddress& address, const Certificate& certificate,
                             const StartDashboard& start) {
    ESPALIER_CHECK(start != nullptr, "a dashboard's address comes with a dashboard");
    const auto answered = [this](const std::string& route, int status) {
      metrics_.CountRequest("dashboard", route, std::to_string(status));
    };
    ESPALIER_ASSIGN_OR_RETURN(dashboard_, start({.address = address,
                                                 .tls = certificate,
                                                 .access = *access_,
                                                 .tuner = *loop_,
                                                 .answered = answered}));
    dashboard_address_ = dashboard_->address();
    return absl::OkStatus();
  }

  GrpcServices GrpcServicesOfFrontends() {
    GrpcServices services;
    for (const auto& frontend : frontends_) {
      auto service = frontend->MakeGrpcService(*loop_, CountIn(metrics_, frontend->name()));
      if (service != nullptr) services.push_back(std::move(service));
    }
    return services;
  }

  // The service's own and those of its frontends.
  std::vector<HttpRoute> Routes() {
    const std::string dashboard =
        dashboard_address_.empty()
            ? ""
            : absl::StrCat(scheme(dashboard_address_), dashboard_address_, "/dashboard");
    std::vector<HttpRoute> all =
        OwnRoutes(dashboard, [this](Tuner& tuner) { return metrics_.Text(tuner, loop_->queued()); },
                  {.streams = streams_.get(),
                   .sessions = sessions_.get(),
                   .revisions = &revisions_,
                   .simulations = simulations_.get()});
    for (const auto& frontend : frontends_) {
      const std::vector<HttpRoute> more = frontend->Routes(*loop_);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  // In order of need: the later ones use the earlier.
  Metrics metrics_;
  Agents agents_;
  ServiceCredentials credentials_;
  std::unique_ptr<AccessControl> access_;
  Frontends frontends_;
  std::optional<DiskWatch> disk_;  // of the loop's thread
  RevisionLog revisions_{RandomHexadecimal(kIncarnationBytes)};
  std::unique_ptr<OptunaSamplers> optuna_;  // asked by the loop's thread
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<BrowserSessions> sessions_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<EventStreams> streams_;
  std::unique_ptr<Simulations> simulations_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<DashboardServer> dashboard_;
  std::string grpc_address_;
  std::string http_address_;
  std::string dashboard_address_;
  ServedPage page_;                      // to be read once it is known
  std::atomic<bool> page_known_{false};  // from when on it does not change
  std::mutex shutdown_mutex_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Start(const ServiceOptions& options) {
  LogToStderr();
  GiveBackFreedMemory();
  auto service = std::make_unique<ServiceImpl>(options);
  ESPALIER_RETURN_IF_ERROR(service->Open(options));
  return service;
}

}  // namespace espalier
