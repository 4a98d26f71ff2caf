#include "tuner/server/http/http_server.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "httplib.h"
#include "spdlog/spdlog.h"
#include "tuner/api/json.h"
#include "tuner/api/masking_tuner.h"
#include "tuner/server/access/trial_tokens.h"
#include "tuner/server/http/entity_tag.h"
#include "tuner/server/http/http_listener.h"
#include "tuner/server/http/http_packing.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/http/later_answers.h"

namespace espalier {

namespace {

constexpr char kJson[] = "application/json";
constexpr int kMethodNotAllowed = 405;
constexpr int kTooMany = 429;

int HttpStatus(absl::StatusCode code) {
  using Code = absl::StatusCode;
  static const std::map<Code, int> kStatuses = {{Code::kOk, 200},
                                                {Code::kInvalidArgument, 400},
                                                {Code::kOutOfRange, 400},
                                                {Code::kUnauthenticated, 401},
                                                {Code::kPermissionDenied, 403},
                                                {Code::kNotFound, 404},
                                                {Code::kAlreadyExists, 409},
                                                {Code::kFailedPrecondition, 409},
                                                {Code::kAborted, 409},
                                                {Code::kResourceExhausted, 429},
                                                {Code::kCancelled, 499},
                                                {Code::kUnimplemented, 501},
                                                {Code::kUnavailable, 503},
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
  response.set_content(
      absl::StrCat("{\"error\":",
                   QuoteJson(std::string_view(status.message().data(), status.message().size())),
                   ",\"code\":\"", absl::StatusCodeToString(status.code()), "\"}"),
      kJson);
}

// Header Idempotency-Key: a bare word, or a structured-field string with its quotes.
std::string RequestKey(const httplib::Request& request) {
  std::string key = request.get_header_value("Idempotency-Key");
  const bool quoted = key.size() >= 2 && key.front() == '"' && key.back() == '"';
  return quoted ? key.substr(1, key.size() - 2) : key;
}

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(TlsContextPtr tls, const AccessControl& access, std::vector<HttpRoute> routes,
                 Tuner& tuner, Metrics& metrics, ProxiedAt proxied, const BrowserSessions* sessions)
      : proxied_(std::move(proxied)),
        access_(access),
        sessions_(sessions),
        scheme_(tls != nullptr ? "https://" : "http://"),
        tuner_(tuner),
        masking_(tuner),
        metrics_(metrics),
        routes_(std::move(routes)),
        listener_(std::move(tls), access, kMaxHttpBody, Door()) {}
  ~HttpServerImpl() override { Stop(); }

  absl::Status Listen(const ListenAddress& address) {
    Configure();
    AddRoutes();
    return listener_.Listen(address);
  }

  std::string address() const override { return listener_.address(); }

  void Stop() override { listener_.Stop(); }

 private:
  HttpDoor Door() {
    HttpDoor door;
    door.opens = [this](std::string_view method, std::string_view target) {
      const FoundRoute found = Find(method, target);
      return found.route != nullptr && found.route->open && Open(found).ok();
    };
    door.waits = [this](std::string_view method, std::string_view target) {
      const FoundRoute found = Find(method, target);
      return found.route != nullptr && found.route->waits;
    };
    door.streams = [this](const std::string& name, std::unique_ptr<StreamConnection> connection) {
      HandOver(name, std::move(connection));
    };
    door.later = [this](const std::string& name, std::function<void()> answered) {
      later_.Begin(name, std::move(answered));
    };
    door.hung_up = [this](const std::string& name) { later_.HungUp(name); };
    if (sessions_ != nullptr) {
      door.session = [this](std::string_view cookies) { return sessions_->TokenOf(cookies); };
    }
    return door;
  }

  void Configure() {
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (request.has_header(kLaterHeader)) return httplib::Server::HandlerResponse::Unhandled;
          const absl::Status status = Admit(request);
          if (status.ok()) return httplib::Server::HandlerResponse::Unhandled;
          Answer("refused", request, {status, ""}, response);
          // The body is not read, and would be taken for the next request.
          response.set_header("Connection", "close");
          return httplib::Server::HandlerResponse::Handled;
        });
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      SetError(StatusOfHttp(response.status, request.method, request.path), response);
      // The library gave up on the request, perhaps in the middle of it.
      response.set_header("Connection", "close");
    });
    server_.set_exception_handler([](const httplib::Request& request, httplib::Response& response,
                                     const std::exception_ptr&) {
      spdlog::error("event=http_exception path=\"{}\"", request.path);
      response.status = 500;
      SetError(absl::InternalError("the request could not be answered"), response);
    });
  }

  void AddRoutes() {
    constexpr char kAny[] = ".*";
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      Route(request, response);
    };
    server_.Get(kAny, answer);
    server_.Post(kAny, answer);
    server_.Put(kAny, answer);
    server_.Patch(kAny, answer);
    server_.Delete(kAny, answer);
    server_.Options(kAny, answer);
  }

  FoundRoute Find(std::string_view method, std::string_view target) const {
    return FindRoute(routes_, method, proxied_.Stripped(target));
  }

  void Route(const httplib::Request& request, httplib::Response& response) {
    if (request.has_header(kLaterHeader)) {
      const LaterAnswers::Named named = later_.Take(request.get_header_value(kLaterHeader));
      if (named.closes) response.set_header("Connection", "close");
      return Answer(named.operation, request, named.answer, response);
    }
    // Where no body is expected none is read, and it would be taken for the next request.
    const bool announced = request.has_header("Transfer-Encoding") ||
                           request.get_header_value("Content-Length") != "0";
    if (request.body.empty() && announced) response.set_header("Connection", "close");
    FoundRoute found = Find(request.method, request.target);
    if (found.route == nullptr) {
      const bool other_method = !found.allowed.empty();
      const std::string what = absl::StrCat(request.method, " ", request.path);
      Answer("none", request,
             {other_method
                  ? absl::UnimplementedError(absl::StrCat("no ", what, ", only ", found.allowed))
                  : absl::NotFoundError(absl::StrCat("no page ", what)),
              ""},
             response);
      if (!other_method) return;
      response.status = kMethodNotAllowed;
      response.set_header("Allow", found.allowed);
      return;
    }
    Shown shown = ShownBy(request);
    const std::string code = CodeIn(*found.route, request);
    if (!code.empty()) shown.token = sessions_->TokenOfCode(code).value_or("");
    HttpCall call{.tuner = access_.SeesSecrets(shown) ? tuner_ : masking_,
                  .path = std::move(found.path),
                  .query = {},
                  .request_key = RequestKey(request),
                  .body = request.body,
                  .service_url = ServiceUrl(request),
                  .accept_encoding = request.get_header_value(kAcceptEncodingHeader),
                  .last_event_id = request.get_header_value("Last-Event-ID"),
                  .base = proxied_.BaseFrom(request.target),
                  .role = access_.RoleOf(shown),
                  .target = std::string(proxied_.Stripped(request.target)),
                  .token = shown.token,
                  .cookies = request.get_header_value("Cookie"),
                  .code = code};
    for (const auto& [name, value] : request.params) call.query.emplace(name, value);
    const absl::Status asked = CheckQuery(*found.route, request.params);
    HttpAnswer answer = asked.ok() ? found.route->answer(call) : HttpAnswer{asked, ""};
    if (answer.status.ok() && answer.stream && request.method == "GET") {
      BeginStream(*found.route, request, std::move(answer.stream), response);
    }
    if (answer.status.ok() && !answer.tag.empty()) {
      answer.headers.emplace_back("ETag", answer.tag);
      if (NamesTag(request.get_header_value("If-None-Match"), answer.tag)) {
        answer.code = kNotModified;  // and what that has of it: PackAnswer
      }
    }
    if (answer.status.ok() && answer.later) {
      const absl::StatusOr<std::string> name = later_.Add(
          found.route->operation, response.has_header("Connection"), std::move(answer.later));
      if (name.ok()) return response.set_header(kLaterHeader, *name);
      answer = {name.status(), ""};
    }
    Answer(found.route->operation, request, answer, response);
  }

  // The connection is handed over as soon as the library has done its part.
  void BeginStream(const HttpRoute& route, const httplib::Request& request, TakeStream take,
                   httplib::Response& response) {
    const std::string cookies =
        request.has_header(kBySessionHeader) ? request.get_header_value("Cookie") : "";
    const auto admitted =
        [this, shown = ShownBy(request), cookies,
         call = absl::StrCat(std::string(route.method), " ", std::string(route.path))] {
          if (!cookies.empty() && sessions_->TokenOf(cookies) != shown.token) {
            return absl::UnauthenticatedError("the session has ended");
          }
          return access_.Admit(call, shown);
        };
    const std::lock_guard lock(streams_mutex_);
    const std::string name = absl::StrCat(++last_stream_);
    streams_.emplace(
        name, [take = std::move(take), admitted](std::unique_ptr<StreamConnection> connection) {
          take(std::move(connection), admitted);
        });
    response.set_header(kStreamHeader, name);
  }
  void HandOver(const std::string& name, std::unique_ptr<StreamConnection> connection) {
    auto stream = [&] {
      const std::lock_guard lock(streams_mutex_);
      return streams_.extract(name);
    }();
    if (!stream.empty()) stream.mapped()(std::move(connection));
  }

  std::string ServiceUrl(const httplib::Request& request) const {
    const std::string host = request.get_header_value("Host");
    return scheme_ + (host.empty() ? listener_.address() : host);
  }

  void Answer(const char* operation, const httplib::Request& request, const HttpAnswer& answer,
              httplib::Response& response) {
    if (proxied_.Stripped(request.path).starts_with("/api"))
      response.set_header("Cache-Control", "no-store");
    metrics_.CountRequest("http", operation, absl::StatusCodeToString(answer.status.code()));
    if (answer.status.ok()) {
      response.status = answer.code;
      response.set_content(answer.body, answer.type);
    } else {
      response.status = HttpStatus(answer.status.code());
      SetError(answer.status, response);
    }
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    if (response.status == kTooMany && !response.has_header("Retry-After")) {
      response.set_header("Retry-After", absl::StrCat(kRetryHttp_s));
    }
  }

  // Before the body is read.
  absl::Status Admit(const httplib::Request& request) const {
    ESPALIER_RETURN_IF_ERROR(CheckFraming(request));
    const FoundRoute found = Find(request.method, request.target);
    const std::string call =
        found.route == nullptr
            ? absl::StrCat(request.method, " ", request.path)
            : absl::StrCat(std::string(found.route->method), " ", std::string(found.route->path));
    const Permission* permission = FindPermission(call);
    if (permission != nullptr && permission->needed == Role::kNobody) {
      return found.route != nullptr && found.route->open ? Open(found) : absl::OkStatus();
    }
    Shown shown = ShownBy(request);
    ESPALIER_RETURN_IF_ERROR(CheckSite(request, shown, proxied_));
    if (const std::string code = found.route == nullptr ? "" : CodeIn(*found.route, request);
        !code.empty()) {
      ESPALIER_ASSIGN_OR_RETURN(shown.token, sessions_->TokenOfCode(code));
    }
    // A caller that may see anything may learn that there is no such page.
    ESPALIER_RETURN_IF_ERROR(
        access_.Admit(found.route == nullptr && !shown.token.empty() ? kAnyPage : call, shown));
    const auto trial = found.path.find("trial_id");
    if (trial == found.path.end()) return absl::OkStatus();
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(trial->second, &number)) number = -1;  // no trial's
    return CheckTrialToken(access_, shown.token, number, tuner_);
  }

  // The code that a browser shows to begin a session; of other calls, none.
  std::string CodeIn(const HttpRoute& route, const httplib::Request& request) const {
    if (sessions_ == nullptr || !route.begins_session) return "";
    const std::string authorization = request.get_header_value("Authorization");
    return authorization.starts_with(kCodeScheme) ? authorization.substr(sizeof(kCodeScheme) - 1)
                                                  : "";
  }

  absl::Status Open(const FoundRoute& found) const {
    static const std::string kNoBody;
    return found.route->open({.tuner = tuner_,
                              .path = found.path,
                              .query = {},
                              .request_key = {},
                              .body = kNoBody,
                              .service_url = {}});
  }

  static constexpr char kAnyPage[] = "GET /api/openapi.json";

  const ProxiedAt proxied_;
  const AccessControl& access_;
  const BrowserSessions* const sessions_;  // null: there are none
  const std::string scheme_;
  Tuner& tuner_;
  MaskingTuner masking_;
  Metrics& metrics_;
  const std::vector<HttpRoute> routes_;
  std::mutex streams_mutex_;  // guards what follows
  std::map<std::string, std::function<void(std::unique_ptr<StreamConnection>)>> streams_;
  std::int64_t last_stream_ = 0;
  LaterAnswers later_{kMaxHttpLater};
  HttpListener listener_;
  httplib::Server& server_ = listener_.server();
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const ListenAddress& address, const Certificate& tls, const AccessControl& access,
    std::vector<HttpRoute> routes, Tuner& tuner, Metrics& metrics, ProxiedAt proxied,
    const BrowserSessions* sessions) {
  ESPALIER_ASSIGN_OR_RETURN(TlsContextPtr context, MakeTlsServer(tls));
  auto server = std::make_unique<HttpServerImpl>(std::move(context), access, std::move(routes),
                                                 tuner, metrics, std::move(proxied), sessions);
  ESPALIER_RETURN_IF_ERROR(server->Listen(address));
  return server;
}

}  // namespace espalier
