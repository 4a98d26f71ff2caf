#include "tuner/server/http/http_connections.h"

#include <poll.h>

#include <chrono>

#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

// A connection that says nothing by itself.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawConnection() { ::close(socket_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  int socket() const { return socket_; }

  void Send(const std::string& text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Up to the end of what `last` ends, or of the connection.
  std::string ReadUntil(const std::string& last) {
    std::string text;
    char c = 0;
    while (!text.ends_with(last) && ::recv(socket_, &c, 1, 0) == 1) text += c;
    return text;
  }

 private:
  int socket_;
};

TEST(HttpConnections, OneServesManyRequests) {
  RunningService running;
  RawConnection connection(running.http_port());
  for (int i = 0; i < 20; ++i) {
    connection.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(connection.ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
  }
}

TEST(HttpConnections, IdleOnesTakeNoThread) {
  RunningService running;
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (std::size_t i = 0; i < 4 * kHttpThreads; ++i) {
    idle.push_back(std::make_unique<RawConnection>(running.http_port()));
  }
  httplib::Client client("127.0.0.1", running.http_port());
  client.set_read_timeout(std::chrono::minutes(1));
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  // Nor are they forgotten.
  idle.back()->Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(idle.back()->ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
}

TEST(HttpConnections, UnfinishedHeadsTakeNoThread) {
  RunningService running;
  std::vector<std::unique_ptr<RawConnection>> unfinished;
  for (std::size_t i = 0; i < 2 * kHttpThreads; ++i) {
    unfinished.push_back(std::make_unique<RawConnection>(running.http_port()));
    unfinished.back()->Send("GET /healthz HT");
  }
  // A second request on a connection that has had its answer is no other.
  unfinished.push_back(std::make_unique<RawConnection>(running.http_port()));
  unfinished.back()->Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HT");
  EXPECT_NE(unfinished.back()->ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
  httplib::Client client("127.0.0.1", running.http_port());
  client.set_read_timeout(std::chrono::minutes(1));
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  // Had they held all threads, the first would have been given up before that.
  for (const auto& connection : {unfinished.front().get(), unfinished.back().get()}) {
    connection->Send("TP/1.1\r\nHost: loc");
    connection->Send("alhost\r\n\r\n");
    EXPECT_NE(connection->ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
  }
}

// Who begins TLS where none is spoken waits for an answer.
TEST(HttpConnections, WhatIsNoRequestIsAnsweredAtOnce) {
  RunningService running;
  RawConnection connection(running.http_port());
  connection.Send("\x16\x03\x01");
  EXPECT_TRUE(connection.ReadUntil("never").starts_with("HTTP/1.1 400 Bad Request\r\n"));
}

TEST(HttpConnections, OfTooManyIdleOnesOneIsClosed) {
  RunningService running;
  std::vector<std::unique_ptr<RawConnection>> idle;
  std::vector<pollfd> ends;
  for (std::size_t i = 0; i <= kMaxHttpIdleConnections; ++i) {
    idle.push_back(std::make_unique<RawConnection>(running.http_port()));
    ends.push_back({idle.back()->socket(), POLLIN, 0});
  }
  ASSERT_EQ(::poll(ends.data(), ends.size(), -1), 1);
  std::size_t answers = 0;
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (ends[i].revents != 0) continue;
    idle[i]->Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    answers += idle[i]->ReadUntil("\r\n\r\nok\n").empty() ? 0U : 1U;
  }
  EXPECT_EQ(answers, kMaxHttpIdleConnections);
}

TEST(HttpConnections, EndWhenAskedTo) {
  RunningService running;
  for (const char* request :
       {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"}) {
    RawConnection connection(running.http_port());
    connection.Send(request);
    EXPECT_TRUE(connection.ReadUntil("never").ends_with("ok\n")) << request;
  }
}

TEST(HttpConnections, ARequestWithoutALengthHasNoBody) {
  RunningService running;
  RawConnection connection(running.http_port());
  connection.Send("POST /api/studies/absent/stop HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(connection.ReadUntil("\"NOT_FOUND\"}").find("404"), std::string::npos);
}

TEST(HttpConnections, ARefusedBodyIsNotTakenForARequest) {
  ServiceOptions options;
  options.token = "secret";
  RunningService running(options);
  RawConnection connection(running.http_port());
  const std::string hidden = "GET /healthz HTTP/1.1\r\n\r\n";
  connection.Send("POST /api/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                  std::to_string(hidden.size()) + "\r\n\r\n" + hidden);
  const std::string replies = connection.ReadUntil("never");
  EXPECT_NE(replies.find("401"), std::string::npos);
  EXPECT_EQ(replies.find("200"), std::string::npos) << replies;
}

}  // namespace
}  // namespace espalier
