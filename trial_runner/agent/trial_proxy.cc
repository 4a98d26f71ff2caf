#include "trial_runner/agent/trial_proxy.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "tuner/credentials/access_token.h"
#include "tuner/forwarding/loopback_listener.h"

namespace espalier {
namespace {

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";
constexpr int kHttpsPort = 443;
constexpr int kHttpPort = 80;

// What an URL of the service names.
struct HttpPlace {
  std::string address;  // HOST:PORT
  std::string path;     // "", or "/proxied"
  bool tls = false;
};

absl::StatusOr<HttpPlace> ReadUrl(const std::string& url) {
  HttpPlace place;
  std::string_view rest = url;
  place.tls = rest.starts_with(kHttps);
  if (!place.tls && !rest.starts_with(kHttp)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--http \"", url, "\": must be HOST:PORT, http://... or https://..."));
  }
  rest.remove_prefix((place.tls ? kHttps : kHttp).size());
  const std::size_t path = std::min(rest.find('/'), rest.size());
  place.address = rest.substr(0, path);
  place.path = rest.substr(path);
  const std::size_t colon = place.address.rfind(':');
  if (colon == std::string::npos || place.address.find(']', colon) != std::string::npos) {
    absl::StrAppend(&place.address, ":", place.tls ? kHttpsPort : kHttpPort);
  }
  ESPALIER_RETURN_IF_ERROR(ParseHostPort(place.address).status());
  return place;
}

bool OnLoopback(const std::string& address) {
  const absl::StatusOr<HostPort> where = ParseHostPort(address);
  return where.ok() && NamesLoopback(where->host);
}

TlsTrust TrustOf(const AgentOptions& options) {
  if (!options.tls_roots.empty()) return {{}, options.tls_roots};
  return {PinOf(options.token), {}};
}

absl::StatusOr<std::unique_ptr<Forwarder>> OpenServer(int handed, const std::string& service,
                                                      const TlsTrust& trust) {
  if (handed < 0) {
    ESPALIER_ASSIGN_OR_RETURN(handed, ListenOnAnyLoopback());
  }
  const auto failed = [](const absl::Status& status) {
    spdlog::warn("a trial's connection was not forwarded: {}", std::string(status.message()));
  };
  return Forwarder::Start(
      handed, {.service = service, .trust = trust, .token = "", .limits = {}, .failed = failed});
}

void CloseHanded(int listener) {
  if (listener >= 0) close(listener);
}

}  // namespace

ServiceAccess DirectAccess(const AgentOptions& options) {
  return {options.service_address, options.http_address, options.tls_ca_file, /*forwarded=*/false};
}

absl::StatusOr<TrialProxy> TrialProxy::Open(const AgentOptions& options,
                                            const v1::AgentHandover* handover) {
  const bool handed = handover != nullptr;
  const int service_listener =
      handed && handover->has_service_listener() ? handover->service_listener() : -1;
  const int http_listener =
      handed && handover->has_http_listener() ? handover->http_listener() : -1;
  TrialProxy proxy;
  proxy.access_ = DirectAccess(options);
  const TlsTrust trust = TrustOf(options);
  if (!trust.any() && OnLoopback(options.service_address)) {
    CloseHanded(service_listener);
    CloseHanded(http_listener);
    return proxy;
  }
  ESPALIER_ASSIGN_OR_RETURN(proxy.service_,
                            OpenServer(service_listener, options.service_address, trust));
  proxy.access_.service = proxy.service_->address();
  proxy.access_.tls_ca_file.clear();
  proxy.access_.forwarded = true;
  if (options.http_address.empty()) {
    CloseHanded(http_listener);
    return proxy;
  }
  ESPALIER_ASSIGN_OR_RETURN(const HttpPlace place, ReadUrl(options.http_address));
  // Likewise, or the roots that the system trusts vouch for it.
  if (place.tls ? !trust.any() : OnLoopback(place.address)) {
    CloseHanded(http_listener);
    return proxy;
  }
  ESPALIER_ASSIGN_OR_RETURN(
      proxy.http_, OpenServer(http_listener, place.address, place.tls ? trust : TlsTrust{}));
  proxy.access_.http = absl::StrCat(std::string(kHttp), proxy.http_->address(), place.path);
  return proxy;
}

void TrialProxy::HandOver(v1::AgentHandover& handover) const {
  if (service_ != nullptr) handover.set_service_listener(service_->listener());
  if (http_ != nullptr) handover.set_http_listener(http_->listener());
}

}  // namespace espalier
