#include "adapters/optuna/dashboard/server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "httplib.h"
#include "spdlog/spdlog.h"
#include "tuner/api/json.h"
#include "tuner/server/http/http_listener.h"

namespace espalier::optuna_dashboard {

namespace {

constexpr std::size_t kMaxBody = kMaxArtifactBytes / 3 * 4 + (1 << 20);  // base64

class DashboardServerImpl final : public DashboardServer {
 public:
  DashboardServerImpl(const DashboardPlace& place, TlsContextPtr tls, const Options& options)
      : access_(place.access),
        dashboard_(place.tuner, options, place.answered),
        listener_(std::move(tls), place.access, kMaxBody) {}
  ~DashboardServerImpl() override { Stop(); }

  absl::Status Listen(const ListenAddress& address) {
    Configure();
    dashboard_.AddRoutes(server_);
    return listener_.Listen(address);
  }

  std::string address() const override { return listener_.address(); }

  void Stop() override { listener_.Stop(); }

 private:
  using Handled = httplib::Server::HandlerResponse;

  void Configure() {
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return Admit(request, response) ? Handled::Unhandled : Handled::Handled;
        });
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      const char* reason = response.status == 404   ? "there is no such page"
                           : response.status == 413 ? "the body is too large"
                                                    : "the request cannot be read";
      Refuse(response.status, absl::StrCat(request.method, " ", request.path, ": ", reason),
             response);
    });
    server_.set_exception_handler([](const httplib::Request& request, httplib::Response& response,
                                     const std::exception_ptr&) {
      spdlog::error("event=http_exception path=\"{}\"", request.path);
      Refuse(500, "internal server error", response);
    });
  }

  bool Admit(const httplib::Request& request, httplib::Response& response) const {
    const absl::Status framing = CheckFraming(request);
    if (!framing.ok()) {
      Refuse(400, std::string(framing.message()), response);
      return false;
    }
    Shown shown = ShownBy(request);
    shown.token = TokenIn(request.get_header_value("Authorization"));
    const absl::Status admitted = access_.Admit(absl::StrCat("dashboard ", request.method), shown);
    if (absl::IsPermissionDenied(admitted)) {
      Refuse(403, std::string(admitted.message()), response);
      return false;
    }
    if (!admitted.ok()) {
      response.set_header("WWW-Authenticate",
                          "Basic realm=\"Espalier: the token is the password\"");
      Refuse(401,
             absl::StrCat(std::string(admitted.message()), "; here it may be the password, too"),
             response);
      return false;
    }
    const absl::Status site = CheckSite(request, shown);
    if (!site.ok()) Refuse(403, std::string(site.message()), response);
    return site.ok();
  }

  static void Refuse(int status, const std::string& reason, httplib::Response& response) {
    response.status = status;
    response.set_content(absl::StrCat("{\"reason\":", QuoteJson(reason), "}"), "application/json");
    // What is left of the request would be taken for the next one.
    response.set_header("Connection", "close");
  }

  const AccessControl& access_;
  Dashboard dashboard_;
  HttpListener listener_;
  httplib::Server& server_ = listener_.server();
};

}  // namespace

StartDashboard Server(Options options) {
  return [options = std::move(options)](
             const DashboardPlace& place) -> absl::StatusOr<std::unique_ptr<DashboardServer>> {
    ESPALIER_RETURN_IF_ERROR(Check(options));
    ESPALIER_ASSIGN_OR_RETURN(TlsContextPtr tls, MakeTlsServer(place.tls));
    auto server = std::make_unique<DashboardServerImpl>(place, std::move(tls), options);
    ESPALIER_RETURN_IF_ERROR(server->Listen(place.address));
    return server;
  };
}

}  // namespace espalier::optuna_dashboard
