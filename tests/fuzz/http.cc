// Requests of one connection, one after the other: heads, bodies with a length and in chunks. Of
// the first byte, 1: the connection is a client's; 2: it is of the service's own user; 4: what
// follows comes in two halves.

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/fuzz/input.h"
#include "tuner/server/http/http_listener.h"
#include "tuner/server/http/http_request_server.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/http/library_server.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBody = 4096;

void CheckHead(std::string_view text) {
  const HttpHead head = ReadHttpHead(text);
  for (const std::string_view part : {head.method, head.target, head.authorization}) {
    if (part.empty()) continue;
    ESPALIER_CHECK(
        part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size(),
        "what is read of a head is within it");
    ESPALIER_CHECK(part.find("\r\n") == std::string_view::npos, "and on one line");
  }
}

bool own_user = false;  // of the connection that is served

// As the service's handlers, without a service behind them.
class FuzzedServer final : public HttpRequestServer {
 public:
  FuzzedServer() {
    set_payload_max_length(kMaxBody);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      ESPALIER_CHECK(ShownBy(request).own_user == own_user, "nobody says that he is the own user");
      static_cast<void>(CheckSite(request, ShownBy(request)));
      FindRoute(routes_, request.method, request.target);
      if (CheckFraming(request).ok()) return HandlerResponse::Unhandled;
      response.status = 400;
      response.set_header("Connection", "close");
      return HandlerResponse::Handled;
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      response.set_header("Connection", "close");
    });
    const auto answer = [](const httplib::Request& request, httplib::Response& response) {
      CheckBody(request);
      response.set_content(std::to_string(request.body.size()), "text/plain");
    };
    Get(".*", answer);
    Post(".*", answer);
    Put(".*", answer);
    Patch(".*", answer);
    Delete(".*", answer);
    Options(".*", answer);
  }

 private:
  static void CheckBody(const httplib::Request& request) {
    ESPALIER_CHECK(request.body.size() <= kMaxBody, "no body is longer than bodies may be");
    const bool read =
        request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
    if (!read || request.has_header("Transfer-Encoding") || request.is_multipart_form_data())
      return;
    ESPALIER_CHECK(request.body.size() == ContentLength(request),
                   "a body is as long as its head says");
  }

  const std::vector<HttpRoute> routes_ = OwnRoutes("", {});
};

// All that has been answered so far, which is not much.
std::string Answers(int socket) {
  std::array<char, 16384> buffer;
  std::string text;
  while (true) {
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Send(int socket, std::string_view text) {
  ESPALIER_CHECK(send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                     static_cast<ssize_t>(text.size()),
                 "an input fits into a socket");
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  static FuzzedServer server;
  std::string_view text = fuzz::TextOf(data, size);
  const std::uint8_t kind = fuzz::TakeByte(text);
  CheckHead(text);
  std::array<int, 2> ends{};
  ESPALIER_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "sockets");
  const FileDescriptor client(ends[0]);
  own_user = (kind & 2) != 0;
  HttpConnection connection(ends[1], nullptr, own_user);
  if ((kind & 1) != 0) connection.Prove();
  const std::string_view first = (kind & 4) != 0 ? text.substr(0, text.size() / 2) : text;
  Send(client.get(), first);
  HttpConnection::Head head = connection.TakeHead();
  if (head == HttpConnection::Head::kFailed) return 0;
  Send(client.get(), text.substr(first.size()));
  shutdown(client.get(), SHUT_WR);
  if (head == HttpConnection::Head::kGoesOn) head = connection.TakeHead();
  while (head == HttpConnection::Head::kWhole) {
    HttpRequestServer::NoAnswer none;
    const bool goes_on = server.ServeOne(connection, none);
    const std::string answers = Answers(client.get());
    ESPALIER_CHECK(answers.empty() || answers.starts_with("HTTP/1.1 "), "an answer is one");
    if (!goes_on) break;
    head = connection.TakeHead();
  }
  return 0;
}
