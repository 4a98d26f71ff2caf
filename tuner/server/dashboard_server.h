#pragma once

#include <memory>
#include <string>

#include "tuner/base/status.h"
#include "tuner/server/dashboard_options.h"
#include "tuner/server/doorkeeper.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/loop.h"
#include "tuner/server/metrics.h"
#include "tuner/server/tls.h"

namespace espalier {

// optuna-dashboard's pages and what they ask for (adapters/optuna/dashboard/routes.h), at an
// address of its own: its paths are fixed, and ours below /api mean other things.
//
// Browsers show the token as the password of any user; programs as "Authorization: Bearer TOKEN".
// Requests that another site's page makes a browser send are refused.
class DashboardServer {
 public:
  static absl::StatusOr<std::unique_ptr<DashboardServer>> Start(const ListenAddress& address,
                                                                const TlsFiles& tls,
                                                                const Doorkeeper& doorkeeper,
                                                                const DashboardOptions& options,
                                                                Loop& loop, Metrics& metrics);
  virtual ~DashboardServer() = default;

  virtual std::string address() const = 0;
  virtual void Stop() = 0;
};

}  // namespace espalier
