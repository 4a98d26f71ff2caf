#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/api/tuner.h"
#include "tuner/credentials/certificate.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/listen_address.h"

namespace espalier {

// Pages on all studies. They have an address of their own because their paths are fixed, and
// collide with ours below /api.
class DashboardServer {
 public:
  virtual ~DashboardServer() = default;

  virtual std::string address() const = 0;  // host:port really bound
  virtual void Stop() = 0;
};

// What a dashboard is started with. AccessControl and tuner outlive it.
struct DashboardPlace {
  ListenAddress address;  // port 0: any free one
  Certificate tls;        // empty: it speaks in the clear
  // Asked about each request before its body is read, as "dashboard METHOD".
  const AccessControl& access;
  Tuner& tuner;
  // Called with each request's route and status, from any thread.
  std::function<void(const std::string& route, int status)> answered;
};

using StartDashboard =
    std::function<absl::StatusOr<std::unique_ptr<DashboardServer>>(const DashboardPlace& place)>;

}  // namespace espalier
