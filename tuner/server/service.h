#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/api/tuner.h"
#include "tuner/core/core.h"
#include "tuner/core/pool_size/engine.h"
#include "tuner/server/access/proxied_at.h"
#include "tuner/server/access/service_credentials.h"
#include "tuner/server/access/tls.h"
#include "tuner/server/disk_watch.h"
#include "tuner/server/frontend.h"
#include "tuner/server/http/dashboard_server.h"
#include "tuner/server/optuna/optuna_options.h"

namespace espalier {

class GrpcServer;
struct GrpcPlace;
using StartGrpc = std::function<absl::StatusOr<std::unique_ptr<GrpcServer>>(GrpcPlace place)>;

struct ServiceOptions {
  std::string grpc_address = "127.0.0.1:0";  // port 0: any free one
  std::string http_address;                  // empty: no HTTP
  std::string dashboard_address;             // of its pages; empty: none
  StartDashboard start_dashboard{};          // where there is such an address
  StartGrpc start_grpc{};                    // none: GrpcServer::Start
  std::vector<MakeFrontend> frontends{};     // for clients of other systems
  std::string database;                      // SQLite file; empty: in memory, lost at exit
  std::string tuner_program{};               // which simulates recorded studies; empty: none does
  // Less room than this on the database's disk is a warning.
  std::int64_t disk_reserve_bytes = kDatabaseReserve_bytes;
  std::string token;  // the shared token that every caller must show; empty: see AccessControl
  TlsFiles tls{};     // of all endpoints
  // What makes an address that is not loopback safe: a certificate and tokens of its own, kept
  // here. Empty: none; such an address then needs the shared token.
  std::string credentials_folder{};
  bool plaintext = false;      // such an address speaks in the clear, unless there is `tls`
  bool open_loopback = false;  // other users of this machine are let in as the service's own
  // The kernel's word lets nobody in: the service's own user, too, shows a token. Needs a folder
  // for credentials or a shared token, and is refused with open_loopback.
  bool no_loopback_trust = false;
  ProxiedAt proxied{};  // of the HTTP address
  double lease_s = 10;
  ClientLease client_lease{};  // of trials that clients run by themselves, as Optuna's do
  double slot_lease_s = 60;    // of slots that such clients hold
  TrialTimeouts timeouts{};    // of studies that say nothing else
  // The policy by which the pool is divided until a client sets another. None: that of its oldest
  // study, which suits a service with one study only.
  std::optional<PluginSpec> policy{StudySpec{}.policy};
  // Starts and releases nodes as the rule of the pool's size says; must outlive the service. None:
  // agents are started by others.
  Engine* engine = nullptr;
  PoolSizeOptions pool_size{};
  OptunaOptions optuna{};  // for studies with the sampler `optuna`
  // Told why the process is about to end, where the database cannot be written or the service meets
  // an error of its own. Called by a thread of the service.
  std::function<void(const std::string& why)> failed{};
};

// The tuner service: storage, core, its owner thread, and the gRPC and HTTP endpoints. Starts
// threads of its own; all methods may be called from any thread.
class Service {
 public:
  // Refuses, naming the address and the remedy: a port in use, an address that is not loopback
  // without a shared token or a folder for credentials, a database that cannot be used (see
  // OpenSqliteStorage), a pool size that makes no sense.
  static absl::StatusOr<std::unique_ptr<Service>> Start(const ServiceOptions& options);
  virtual ~Service() = default;  // shuts down if Shutdown was not called

  virtual std::string grpc_address() const = 0;  // host:port really bound
  virtual std::string http_address() const = 0;  // likewise; empty: none
  virtual std::string dashboard_address() const = 0;
  // Of the pages below the HTTP address.
  virtual ServedPage page() const = 0;

  // What the service is known by, and its tokens where it can be reached from other machines.
  virtual const ServiceCredentials& credentials() const = 0;
  // "https://" or "http://": what is spoken at one of the addresses above.
  virtual std::string scheme(const std::string& address) const = 0;

  // For who runs it in their own process.
  virtual Tuner& tuner() = 0;

  // Takes no more calls, finishes those under way, commits, closes the database. Trials train on
  // under their agents until the agents' own end.
  virtual void Shutdown() = 0;
};

}  // namespace espalier
