#include "tuner/server/dashboard_server.h"

#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/routes.h"
#include "httplib.h"
#include "spdlog/spdlog.h"
#include "tuner/api/json.h"
#include "tuner/server/token.h"

namespace espalier {

namespace {

constexpr std::size_t kMaxBody = optuna_dashboard::kMaxArtifactBytes / 3 * 4 + (1 << 20);  // base64

class DashboardServerImpl final : public DashboardServer {
 public:
  DashboardServerImpl(std::string token, const TlsFiles& tls, const DashboardOptions& options,
                      Loop& loop, Metrics& metrics)
      : token_(std::move(token)),
        dashboard_(loop, {options.page_folder, options.artifact_folder},
                   [&metrics](const std::string& route, int status) {
                     metrics.CountRequest("dashboard", route, std::to_string(status));
                   }),
        server_(MakeHttpServer(tls)) {}
  ~DashboardServerImpl() override { Stop(); }

  absl::Status Listen(ListenAddress address) {
    ESPALIER_RETURN_IF_ERROR(CheckFree(address));
    Configure();
    dashboard_.AddRoutes(*server_);
    const bool any = address.port == 0;
    if (any) address.port = server_->bind_to_any_port(address.host);
    if (address.port < 0 || (!any && !server_->bind_to_port(address.host, address.port))) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", address.text(), "; choose another port"));
    }
    address_ = address.text();
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    // Stop does nothing to a server that has not begun to run.
    while (!server_->is_running()) std::this_thread::yield();
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Stop() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

 private:
  using Handled = httplib::Server::HandlerResponse;

  void Configure() {
    server_->set_payload_max_length(kMaxBody);
    server_->set_tcp_nodelay(true);
    // Not SO_REUSEPORT, which the library sets: a second service on the port must be noticed.
    server_->set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_->set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return Admit(request, response) ? Handled::Unhandled : Handled::Handled;
        });
    server_->set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      const char* reason = response.status == 404   ? "there is no such page"
                           : response.status == 413 ? "the body is too large"
                                                    : "the request cannot be read";
      Refuse(response.status, absl::StrCat(request.method, " ", request.path, ": ", reason),
             response);
    });
    server_->set_exception_handler([](const httplib::Request& request, httplib::Response& response,
                                      const std::exception_ptr&) {
      spdlog::error("event=http_exception path=\"{}\"", request.path);
      Refuse(500, "internal server error", response);
    });
  }

  bool Admit(const httplib::Request& request, httplib::Response& response) const {
    const std::string authorization = request.get_header_value("Authorization");
    if (!token_.empty() && !ShowsToken(authorization, token_) && !HasPassword(authorization)) {
      response.set_header("WWW-Authenticate",
                          "Basic realm=\"Espalier: the token is the password\"");
      Refuse(401, "this tuner service needs its token, as password or as Bearer", response);
      return false;
    }
    // Browsers name the site whose page sends the request, other programs none.
    const std::string origin = request.get_header_value("Origin");
    const std::size_t scheme = origin.find("://");
    if (!origin.empty() && (scheme == std::string::npos ||
                            origin.substr(scheme + 3) != request.get_header_value("Host"))) {
      Refuse(403, "requests of another site's pages are refused", response);
      return false;
    }
    const std::string host = request.get_header_value("Host");
    if (token_.empty() && !host.empty() && !IsAddressOrLocalhost(host)) {
      Refuse(403, "a service without a token is called localhost or by its address", response);
      return false;
    }
    return true;
  }

  bool HasPassword(const std::string& authorization) const {
    constexpr std::string_view kBasic = "Basic ";
    std::string pair;
    if (authorization.compare(0, kBasic.size(), kBasic) != 0) return false;
    if (!absl::Base64Unescape(authorization.substr(kBasic.size()), &pair)) return false;
    const std::size_t colon = pair.find(':');
    return colon != std::string::npos && SameToken(pair.substr(colon + 1), token_);
  }

  static void Refuse(int status, const std::string& reason, httplib::Response& response) {
    response.status = status;
    response.set_content(absl::StrCat("{\"reason\":", QuoteJson(reason), "}"), "application/json");
  }

  const std::string token_;
  optuna_dashboard::Dashboard dashboard_;
  const std::unique_ptr<httplib::Server> server_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DashboardServer>> DashboardServer::Start(
    const ListenAddress& address, const std::string& token, const TlsFiles& tls,
    const DashboardOptions& options, Loop& loop, Metrics& metrics) {
  ESPALIER_RETURN_IF_ERROR(optuna_dashboard::Check({options.page_folder, options.artifact_folder}));
  auto server = std::make_unique<DashboardServerImpl>(token, tls, options, loop, metrics);
  ESPALIER_RETURN_IF_ERROR(server->Listen(address));
  return server;
}

}  // namespace espalier
