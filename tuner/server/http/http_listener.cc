#include "tuner/server/http/http_listener.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "httplib.h"

namespace espalier {

namespace {

HttpDoor WithAccess(HttpDoor door, const AccessControl& access) {
  door.trusts = [&access](const Peer& peer) { return access.Trusts(peer); };
  door.knows = [&access](const std::string& authorization) {
    const std::string token = TokenIn(authorization);
    return !token.empty() && access.Knows(token);
  };
  return door;
}

}  // namespace

HttpListener::HttpListener(TlsContextPtr tls, const AccessControl& access, std::size_t max_body,
                           HttpDoor door)
    : server_(MakeHttpServer(std::move(tls), WithAccess(std::move(door), access))) {
  // No other site may show a page of ours within its own, or take an answer for a page.
  server_->set_default_headers(
      {{"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "SAMEORIGIN"}});
  server_->set_payload_max_length(max_body);
  server_->set_tcp_nodelay(true);
  // Not SO_REUSEPORT, which the library sets: a second service on the port must be noticed.
  server_->set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
}

HttpListener::~HttpListener() { Stop(); }

absl::Status HttpListener::Listen(ListenAddress address) {
  ESPALIER_RETURN_IF_ERROR(CheckFree(address));
  const bool any = address.port == 0;
  if (any) address.port = server_->bind_to_any_port(address.host);
  if (any ? address.port <= 0 : !server_->bind_to_port(address.host, address.port)) {
    address.port = 0;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", address.text(), "; choose another port"));
  }
  address_ = address.text();
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  // Stop does nothing to a server that has not begun to run.
  while (!server_->is_running()) std::this_thread::yield();
  return absl::OkStatus();
}

void HttpListener::Stop() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

Shown ShownBy(const httplib::Request& request) {
  return {request.has_header(kOwnUserHeader),
          BearerToken(request.get_header_value("Authorization"))};
}

absl::Status CheckFraming(const httplib::Request& request) {
  const auto refuse = [](const char* header, const std::string& want, const std::string& got) {
    return absl::InvalidArgumentError(absl::StrCat(header, ": needs ", want, ", got ", got));
  };
  const std::size_t lengths = request.get_header_value_count("Content-Length");
  const std::string length = request.get_header_value("Content-Length");
  if (lengths > 1) return refuse("Content-Length", "one value", absl::StrCat(lengths));
  std::uint64_t bytes = 0;
  if (lengths == 1 && (!absl::SimpleAtoi(length, &bytes) ||
                       length.find_first_not_of("0123456789") != std::string::npos)) {
    return refuse("Content-Length", "a number of bytes", length);
  }
  const std::string coding = request.get_header_value("Transfer-Encoding");
  if (request.has_header("Transfer-Encoding")) {
    if (request.get_header_value_count("Transfer-Encoding") > 1 ||
        !absl::EqualsIgnoreCase(coding, "chunked")) {
      return refuse("Transfer-Encoding", "\"chunked\" or none", coding);
    }
    if (lengths == 1) return refuse("Content-Length", "none beside chunks", length);
  }
  const std::string packing = request.get_header_value("Content-Encoding");
  if (!packing.empty() && !absl::EqualsIgnoreCase(packing, "identity")) {
    return refuse("Content-Encoding", "none: bodies are taken as they are", packing);
  }
  return absl::OkStatus();
}

absl::Status CheckSite(const httplib::Request& request, const Shown& shown,
                       const ProxiedAt& proxied) {
  const std::string host = request.get_header_value("Host");
  const std::string origin = request.get_header_value("Origin");
  const std::size_t scheme = origin.find("://");
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  // Only browsers say so, of what a page of another origin makes them fetch. Where a link leads
  // them, that page reads nothing of it.
  const bool link = request.get_header_value("Sec-Fetch-Mode") == "navigate" &&
                    (request.method == "GET" || request.method == "HEAD");
  if ((site == "cross-site" || site == "same-site") && !link) {
    return absl::PermissionDeniedError(absl::StrCat(
        "requests of other sites' pages are refused, and this one is (Sec-Fetch-Site: ", site,
        ")"));
  }
  const auto is_ours = [&](const std::string& named) {
    return named == host || proxied.Names(named);
  };
  if (!origin.empty() && (scheme == std::string::npos || !is_ours(origin.substr(scheme + 3)))) {
    return absl::PermissionDeniedError(
        absl::StrCat("requests of other sites' pages are refused, and this one is of ", origin));
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (request.has_header(kBySessionHeader) && !reads &&
      (origin.empty() || !request.has_header(kPageHeader))) {
    return absl::PermissionDeniedError(
        absl::StrCat("what a session's cookie lets in changes something only for the service's own "
                     "pages: they send Origin and ",
                     kPageHeader, ": 1"));
  }
  if (!shown.own_user || !shown.token.empty() || host.empty() || IsAddressOrLocalhost(host) ||
      proxied.Names(host)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("a request without a token calls the service localhost or by its address (any "
                   "page may make a browser send one), or by what --web-host names, got Host: ",
                   host));
}

}  // namespace espalier
