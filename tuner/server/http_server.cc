#include "tuner/server/http_server.h"

#include <sys/socket.h>

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "httplib.h"
#include "spdlog/spdlog.h"
#include "tuner/api/json.h"
#include "tuner/api/operations.h"
#include "tuner/server/token.h"

namespace espalier {

namespace {

constexpr char kJson[] = "application/json";
constexpr char kIndexPage[] =
    "<!doctype html><html><head><meta charset=\"utf-8\"><title>Espalier</title></head><body>"
    "<h1>Espalier</h1><ul><li><a href=\"api/studies\">studies</a></li>"
    "<li><a href=\"api/pool\">pool</a></li><li><a href=\"metrics\">metrics</a></li>"
    "<li><a href=\"healthz\">health</a></li></ul></body></html>\n";

int HttpStatus(absl::StatusCode code) {
  using Code = absl::StatusCode;
  static const std::map<Code, int> kStatuses = {
      {Code::kOk, 200},                 {Code::kInvalidArgument, 400}, {Code::kOutOfRange, 400},
      {Code::kUnauthenticated, 401},    {Code::kPermissionDenied, 403}, {Code::kNotFound, 404},
      {Code::kAlreadyExists, 409},      {Code::kFailedPrecondition, 409}, {Code::kAborted, 409},
      {Code::kResourceExhausted, 429},  {Code::kUnimplemented, 501},   {Code::kUnavailable, 503},
      {Code::kDeadlineExceeded, 504}};
  const auto found = kStatuses.find(code);
  return found == kStatuses.end() ? 500 : found->second;
}

absl::Status StatusOfHttp(int status, const std::string& method, const std::string& path) {
  if (status == 404) return absl::NotFoundError(absl::StrCat("no page ", method, " ", path));
  if (status == 413) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the body has more than ", kMaxHttpBody, " bytes"));
  }
  return status < 500 ? absl::InvalidArgumentError("the request cannot be read")
                      : absl::InternalError("the request could not be answered");
}

void SetError(const absl::Status& status, httplib::Response& response) {
  response.set_content(absl::StrCat("{\"error\":", QuoteJson(std::string_view(status.message().data(), status.message().size())), ",\"code\":\"",
                                    absl::StatusCodeToString(status.code()), "\"}"),
                       kJson);
}

bool Flag(const httplib::Request& request, const char* name, bool otherwise) {
  if (!request.has_param(name)) return otherwise;
  const std::string value = request.get_param_value(name);
  return value != "0" && value != "false";
}

v1::GetStudyRequest StudyRequest(const httplib::Request& request) {
  v1::GetStudyRequest wanted;
  wanted.set_name(request.matches[1]);
  wanted.set_active_only(Flag(request, "active", false));
  wanted.set_without_values(!Flag(request, "values", true));
  return wanted;
}

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(std::string token, Loop& loop, Metrics& metrics)
      : token_(std::move(token)), loop_(loop), metrics_(metrics) {}
  ~HttpServerImpl() override { Stop(); }

  absl::Status Listen(ListenAddress address) {
    ESPALIER_RETURN_IF_ERROR(CheckFree(address));
    Configure();
    AddRoutes();
    if (address.port == 0) {
      address.port = server_.bind_to_any_port(address.host);
      if (address.port < 0) address.port = 0;
    } else if (!server_.bind_to_port(address.host, address.port)) {
      address.port = 0;
    }
    if (address.port == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", address.text(), "; choose another port"));
    }
    address_ = address.text();
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // Stop does nothing to a server that has not begun to run.
    while (!server_.is_running()) std::this_thread::yield();
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Stop() override {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

 private:
  void Configure() {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kHttpThreads); };
    server_.set_payload_max_length(kMaxHttpBody);
    server_.set_read_timeout(kHttpTimeout_s);
    server_.set_write_timeout(kHttpTimeout_s);
    // An idle connection would hold one of few threads.
    server_.set_keep_alive_max_count(1);
    server_.set_tcp_nodelay(true);
    // Not SO_REUSEPORT, which the library sets: a second service on the port must be noticed.
    server_.set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (MayEnter(request)) return httplib::Server::HandlerResponse::Unhandled;
          Answer("token", absl::UnauthenticatedError("this tuner service needs its token: header "
                                                     "\"Authorization: Bearer TOKEN\""),
                 "", kJson, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (response.body.empty()) {
        SetError(StatusOfHttp(response.status, request.method, request.path), response);
      }
    });
    server_.set_exception_handler([](const httplib::Request& request,
                                     httplib::Response& response, const std::exception_ptr&) {
      spdlog::error("event=http_exception path=\"{}\"", request.path);
      response.status = 500;
      SetError(absl::InternalError("the request could not be answered"), response);
    });
  }

  void AddRoutes() {
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(kIndexPage, "text/html");
    });
    server_.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
      Answer("healthz", loop_.Read([](const View&) {}), "ok\n", "text/plain", response);
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      const auto text = metrics_.Text(loop_, loop_.queued());
      Answer("metrics", text.status(), text.ok() ? *text : "", "text/plain; version=0.0.4",
             response);
    });
    server_.Get("/api/studies", [this](const httplib::Request&, httplib::Response& response) {
      Answer("ListStudies", api::ListStudies(loop_, {}), response);
    });
    server_.Get("/api/pool", [this](const httplib::Request&, httplib::Response& response) {
      Answer("GetPool", api::GetPool(loop_, {}), response);
    });
    server_.Get("/api/studies/([^/]+)",
                [this](const httplib::Request& request, httplib::Response& response) {
                  Answer("GetStudy", api::GetStudy(loop_, StudyRequest(request)), response);
                });
    server_.Get("/api/studies/([^/]+)/trials",
                [this](const httplib::Request& request, httplib::Response& response) {
                  auto details = api::GetStudy(loop_, StudyRequest(request));
                  std::string json;
                  if (details.ok()) json = TrialsJson(*details);
                  Answer("GetTrials", details.status(), json, kJson, response);
                });
    server_.Post("/api/trials/([0-9]+)/tell",
                 [this](const httplib::Request& request, httplib::Response& response) {
                   Answer("Tell", Tell(request), response);
                 });
  }

  static std::string TrialsJson(const v1::StudyDetails& details) {
    std::string json = "{\"trials\":[";
    for (const v1::Trial& trial : details.trials()) {
      if (json.back() != '[') json += ',';
      json += MessageToJson(trial);
    }
    return json + "]}";
  }

  absl::StatusOr<v1::TellResponse> Tell(const httplib::Request& request) {
    v1::TellRequest tell;
    ESPALIER_RETURN_IF_ERROR(MessageFromJson(request.body, tell));
    // proto3 takes an absent value for 0, which would be a value told by mistake.
    if (request.body.find("\"value\"") == std::string::npos) {
      return absl::InvalidArgumentError("TellRequest: \"value\" is needed, such as {\"value\": 0.5}");
    }
    const std::string id = request.matches[1];
    std::int64_t trial_id = 0;
    if (std::from_chars(id.data(), id.data() + id.size(), trial_id).ec != std::errc()) {
      return absl::InvalidArgumentError(absl::StrCat("trial id ", id, " is too large"));
    }
    tell.set_trial_id(trial_id);
    return api::Tell(loop_, tell);
  }

  template <typename Message>
  void Answer(const char* method, const absl::StatusOr<Message>& result,
              httplib::Response& response) {
    Answer(method, result.status(), result.ok() ? MessageToJson(*result) : "", kJson, response);
  }

  void Answer(const char* method, const absl::Status& status, const std::string& body,
              const char* type, httplib::Response& response) {
    metrics_.CountRequest("http", method, absl::StatusCodeToString(status.code()));
    response.status = HttpStatus(status.code());
    if (status.ok()) {
      response.set_content(body, type);
    } else {
      SetError(status, response);
    }
  }

  bool MayEnter(const httplib::Request& request) const {
    if (token_.empty() || request.path == "/healthz" || request.path == "/") return true;
    return ShowsToken(request.get_header_value("Authorization"), token_);
  }

  const std::string token_;
  Loop& loop_;
  Metrics& metrics_;
  httplib::Server server_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const ListenAddress& address,
                                                              const std::string& token, Loop& loop,
                                                              Metrics& metrics) {
  auto server = std::make_unique<HttpServerImpl>(token, loop, metrics);
  ESPALIER_RETURN_IF_ERROR(server->Listen(address));
  return server;
}

}  // namespace espalier
