#include "tuner/server/engines/kubernetes_api.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/host_port.h"
#include "base/json/parse_json.h"
#include "httplib.h"
#include "tuner/server/access/listen_address.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

constexpr const char* kAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr const char* kSecure = "https://";
constexpr const char* kPlain = "http://";
constexpr double kMostIdle_s = 5;  // servers close connections that nobody uses
constexpr double kMostRetryAfter_s = 60;
constexpr std::size_t kMostMessage = 600;

std::string LineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

bool CanBeRead(const std::string& path) { return std::ifstream(path).good(); }

// OpenSSL writes to connections that the server has closed.
void BlockBrokenPipes() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

// Of an API server: https://, or http:// on loopback.
absl::StatusOr<ListenAddress> AddressOf(const std::string& url) {
  const bool secure = url.starts_with(kSecure);
  absl::StatusOr<ListenAddress> address = absl::InvalidArgumentError("");
  if (secure || url.starts_with(kPlain))
    address = ParseListenAddress(url.substr(url.find("//") + 2));
  if (address.ok() && (secure || address->loopback())) return address;
  return absl::InvalidArgumentError(absl::StrCat(
      "option \"server\" needs https://HOST:PORT, or on this machine http://, got \"", url, "\""));
}

// What the server says of it: the message of its Status object, else its code.
std::string MessageOf(int code, const std::string& body, std::string* reason) {
  const Json json = ParseJson(body);
  std::string message;
  if (json.is_object()) {
    if (const auto at = json.find("message"); at != json.end() && at->is_string()) {
      message = at->get<std::string>();
    }
    if (const auto at = json.find("reason"); at != json.end() && at->is_string()) {
      *reason = at->get<std::string>();
    }
  }
  if (message.empty()) return absl::StrCat("the API server answers with HTTP ", code);
  return absl::StrReplaceAll(message.substr(0, kMostMessage), {{"\n", " "}, {"\r", " "}});
}

absl::StatusCode CodeOf(int code, const std::string& reason) {
  switch (code) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 504:  // it has given up, or what is between us has
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return code >= 400 && code < 500 ? absl::StatusCode::kInvalidArgument
                                       : absl::StatusCode::kUnavailable;
  }
}

absl::Status Unanswered(const ApiServer& api, double limit_s, const ApiCall& call,
                        httplib::Error error) {
  using Error = httplib::Error;
  const std::string server = absl::StrCat("the API server ", api.address);
  if (error == Error::SSLLoadingCerts || error == Error::SSLServerVerification) {
    return absl::UnavailableError(
        absl::StrCat(server, " shows a certificate for which ",
                     api.ca_file.empty() ? "nobody vouches whom this system trusts (option \"ca\")"
                                         : absl::StrCat("\"", api.ca_file, "\" does not vouch")));
  }
  const bool unsent = error == Error::Connection || error == Error::ConnectionTimeout ||
                      error == Error::SSLConnection || error == Error::BindIPAddress;
  if (unsent) return absl::UnavailableError(absl::StrCat(server, " cannot be reached"));
  const std::string text = absl::StrFormat("%s has not answered within %g s", server, limit_s);
  return call.method == "GET" ? absl::UnavailableError(text) : absl::DeadlineExceededError(text);
}

}  // namespace

std::string InQuery(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

absl::StatusOr<ApiServer> FindApiServer(ApiServer given) {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  const std::string folder = kAccountFolder;
  int number = 0;
  if (given.address.empty()) {
    if (host == nullptr || port == nullptr || !absl::SimpleAtoi(port, &number)) {
      return absl::InvalidArgumentError(
          "option \"server\" is needed outside of a cluster: the API server, https://HOST:PORT");
    }
    given.address = kSecure + HostPort{host, number}.text();
    if (given.ca_file.empty()) given.ca_file = folder + "ca.crt";
    if (given.token_file.empty()) given.token_file = folder + "token";
    if (given.space.empty()) given.space = LineOf(folder + "namespace");
  }
  if (given.space.empty()) given.space = "default";
  ESPALIER_RETURN_IF_ERROR(AddressOf(given.address).status());
  for (const auto& [option, file] : {std::pair{"ca", given.ca_file}, {"token", given.token_file}}) {
    if (!file.empty() && !CanBeRead(file)) {
      return absl::InvalidArgumentError(
          absl::StrCat("option \"", option, "\": the file \"", file, "\" cannot be read"));
    }
  }
  return given;
}

struct KubernetesApi::Answer {
  int code = 0;
  double retry_after_s = 0;
  std::string body;
};

struct KubernetesApi::Connection {
  std::unique_ptr<httplib::ClientImpl> client;
  Time last_used{};
};

KubernetesApi::KubernetesApi(ApiServer server, double limit_s)
    : server_(std::move(server)), limit_s_(limit_s) {}

KubernetesApi::~KubernetesApi() = default;

absl::StatusOr<std::string> KubernetesApi::Token() const {
  if (server_.token_file.empty()) return std::string();
  const std::string token = LineOf(server_.token_file);
  if (!token.empty()) return token;
  return absl::UnauthenticatedError(absl::StrCat(
      "the token for the API server, \"", server_.token_file, "\", cannot be read or is empty"));
}

absl::StatusOr<std::string> KubernetesApi::Ask(const ApiCall& call) {
  if (const double wait_s = SecondsBetween(Now(), left_alone_until_); wait_s > 0) {
    return absl::ResourceExhaustedError(
        "the API server has too much to do, and has asked to be left alone for a moment");
  }
  BlockBrokenPipes();
  ESPALIER_ASSIGN_OR_RETURN(const std::string token, Token());
  ESPALIER_ASSIGN_OR_RETURN(Answer answer, Send(call, token));
  if (answer.code == 401) {
    // It may have been exchanged between our reading and the server's.
    ESPALIER_ASSIGN_OR_RETURN(const std::string again, Token());
    if (again != token) {
      ESPALIER_ASSIGN_OR_RETURN(answer, Send(call, again));
    }
  }
  if (answer.code >= 200 && answer.code < 300) return std::move(answer.body);
  return ErrorOf(answer);
}

absl::Status KubernetesApi::ErrorOf(const Answer& answer) {
  std::string reason;
  const std::string message = MessageOf(answer.code, answer.body, &reason);
  if (answer.code == 429 || answer.code == 503) {
    left_alone_until_ = After(Now(), std::clamp(answer.retry_after_s, 0.0, kMostRetryAfter_s));
  }
  if (answer.code == 401) {
    const std::string from =
        server_.token_file.empty()
            ? "wants a token: option \"token\""
            : absl::StrCat("does not take the token of \"", server_.token_file, "\"");
    return absl::UnauthenticatedError(
        absl::StrCat("the API server ", server_.address, " ", from, " (", message, ")"));
  }
  if (answer.code == 429) {
    return absl::ResourceExhaustedError(
        "the API server has too much to do, and has asked to be left alone for a moment");
  }
  return absl::Status(CodeOf(answer.code, reason), message);
}

// The one that there is, while it is fresh, else a new one.
KubernetesApi::Connection& KubernetesApi::Connect() {
  if (connection_ && SecondsBetween(connection_->last_used, Now()) <= kMostIdle_s) {
    connection_->last_used = Now();
    return *connection_;
  }
  const bool secure = server_.address.starts_with(kSecure);
  const ListenAddress at = *AddressOf(server_.address);
  connection_ = std::make_unique<Connection>();
  if (secure) {
    connection_->client = std::make_unique<httplib::SSLClient>(at.host, at.port);
  } else {
    connection_->client = std::make_unique<httplib::ClientImpl>(at.host, at.port);
  }
  connection_->last_used = Now();
  httplib::ClientImpl& client = *connection_->client;
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(limit_s_ * 1000));
  client.set_connection_timeout(limit);
  client.set_read_timeout(limit);
  client.set_write_timeout(limit);
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  client.enable_server_certificate_verification(true);
  if (!server_.ca_file.empty()) client.set_ca_cert_path(server_.ca_file);
  return *connection_;
}

absl::StatusOr<KubernetesApi::Answer> KubernetesApi::Send(const ApiCall& call,
                                                          const std::string& token) {
  const Time until = After(Now(), limit_s_);
  Answer answer;
  httplib::Request request;
  request.method = call.method;
  request.path = absl::StrCat(call.group.empty() ? "/api/v1" : "/apis/" + call.group,
                              "/namespaces/", server_.space, call.path);
  request.body = call.body;
  request.set_header("Accept", "application/json");
  if (!call.body.empty()) {
    request.set_header("Content-Type",
                       call.is_patch ? "application/merge-patch+json" : "application/json");
  }
  if (!token.empty()) request.set_header("Authorization", "Bearer " + token);
  request.content_receiver = [&](const char* bytes, std::size_t count, std::uint64_t,
                                 std::uint64_t) {
    answer.body.append(bytes, count);
    return answer.body.size() <= kMostApiAnswer && Now() < until;
  };
  const httplib::Result result = Connect().client->send(request);
  if (!result) {
    connection_.reset();
    return Unanswered(server_, limit_s_, call, result.error());
  }
  answer.code = result->status;
  double seconds = 0;
  if (absl::SimpleAtod(result->get_header_value("Retry-After"), &seconds)) {
    answer.retry_after_s = seconds;
  }
  return answer;
}

}  // namespace espalier
