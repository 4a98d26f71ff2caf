#include "tuner/server/http/http_connections.h"

#include <poll.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/server/http/raw_connection.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {
namespace {

TEST(HttpConnections, OneServesManyRequests) {
  RunningService running;
  RawConnection connection(running.http_port());
  for (int i = 0; i < 20; ++i) {
    connection.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(connection.ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
  }
}

// Whoever answers is guarded by the library; these are asked before, or told after.
TEST(HttpConnections, WhatThrowsAtTheDoorClosesThatConnectionAlone) {
  const auto server = MakeHttpServer(nullptr, {.trusts = nullptr,
                                               .knows =
                                                   [](const std::string& shown) {
                                                     if (shown == "throw")
                                                       throw std::runtime_error("at the door");
                                                     return shown == "known";
                                                   },
                                               .opens =
                                                   [](std::string_view, std::string_view target) {
                                                     if (target == "/throw")
                                                       throw std::runtime_error("within");
                                                     return false;
                                                   }});
  server->Get(".*", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("here", "text/plain");
  });
  server->set_logger([](const httplib::Request& request, const httplib::Response&) {
    if (request.path == "/log") throw std::runtime_error("in the log");
  });
  const int port = server->bind_to_any_port("127.0.0.1");
  std::thread listens([&] { server->listen_after_bind(); });
  while (!server->is_running()) std::this_thread::yield();
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: throw\r\n\r\n",
        "GET /throw HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /log HTTP/1.1\r\nHost: localhost\r\nAuthorization: known\r\n\r\n"}) {
    RawConnection connection(port);
    connection.Send(request);
    EXPECT_EQ(connection.ReadUntil("here"), "") << request;
    RawConnection another(port);
    another.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(another.ReadUntil("here").find("200 OK"), std::string::npos);
  }
  server->stop();
  listens.join();
}

// A server whose pages below /slow are there when the test lets them go.
class SlowPages {
 public:
  SlowPages()
      : server_(MakeHttpServer(nullptr, {.trusts = nullptr,
                                         .knows = [](const std::string&) { return true; },
                                         .opens = nullptr,
                                         .waits =
                                             [](std::string_view method, std::string_view target) {
                                               return method == "GET" &&
                                                      target.starts_with("/slow");
                                             }})),
        port_(server_->bind_to_any_port("127.0.0.1")) {
    server_->Get("/slow.*", [this](const httplib::Request&, httplib::Response& response) {
      ++begun_;
      gone_.wait();
      response.set_content("slow", "text/plain");
    });
    server_->Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("here", "text/plain");
    });
    listens_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }
  ~SlowPages() {
    LetGo();
    server_->stop();
    listens_.join();
  }

  static std::string Get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  // More than can be under way at a time, each on its connection; when those that can have begun.
  void AskForMany(const std::string& requests) {
    for (std::size_t i = 0; i < kHttpWaitThreads + kHttpThreads; ++i) {
      asking_.push_back(std::make_unique<RawConnection>(port_));
      asking_.back()->Send(requests);
    }
    while (begun_ < kHttpWaitThreads) std::this_thread::yield();
  }
  void ExpectOthersAreAnswered() const {
    PatientClient other(port_);
    const auto answer = other.Get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "here");
  }
  void LetGo() {
    if (!std::exchange(let_go_, true)) go_.set_value();
  }
  void ExpectAllAreAnswered() {
    LetGo();
    for (const auto& connection : asking_) {
      EXPECT_TRUE(connection->ReadUntil("slow").ends_with("slow"));
    }
  }
  std::size_t begun() const { return begun_; }

 private:
  std::promise<void> go_;
  const std::shared_future<void> gone_ = go_.get_future().share();
  bool let_go_ = false;
  std::atomic<std::size_t> begun_ = 0;
  const std::unique_ptr<httplib::Server> server_;
  const int port_;
  std::thread listens_;
  std::vector<std::unique_ptr<RawConnection>> asking_;
};

TEST(HttpConnections, RequestsThatWaitKeepNoOthersWaiting) {
  SlowPages pages;
  pages.AskForMany(SlowPages::Get("/slow"));
  pages.ExpectOthersAreAnswered();
  EXPECT_EQ(pages.begun(), kHttpWaitThreads);
  pages.ExpectAllAreAnswered();
}

TEST(HttpConnections, NorDoThoseThatFollowAnotherOnItsConnection) {
  SlowPages pages;
  pages.AskForMany(SlowPages::Get("/") + SlowPages::Get("/slow/too"));
  pages.ExpectOthersAreAnswered();
  EXPECT_EQ(pages.begun(), kHttpWaitThreads);
  pages.ExpectAllAreAnswered();
}

TEST(HttpConnections, IdleOnesTakeNoThread) {
  RunningService running;
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (std::size_t i = 0; i < 4 * kHttpThreads; ++i) {
    idle.push_back(std::make_unique<RawConnection>(running.http_port()));
  }
  PatientClient client(running.http_port());
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
  PatientClient client(running.http_port());
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
  // Nor that of one who would wait to be told that it may come.
  RawConnection expecting(running.http_port());
  expecting.Send(
      "POST /api/studies HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
      std::to_string(hidden.size()) + "\r\n\r\n" + hidden);
  const std::string answers = expecting.ReadUntil("never");
  EXPECT_NE(answers.find("401"), std::string::npos);
  EXPECT_EQ(answers.find("200"), std::string::npos) << answers;
}

// Who asks without a pause, and would be answered for ever.
TEST(HttpConnections, WhoAlwaysHasOneMoreKeepsNoServiceFromEnding) {
  for (const char* token : {"", "Authorization: Bearer secret\r\n"}) {
    ServiceOptions options;
    options.token = "secret";
    auto running = std::make_unique<RunningService>(options);
    RawConnection connection(running->http_port());
    std::atomic<bool> over = false;
    std::thread asking([&] {
      const std::string one = "GET /healthz HTTP/1.1\r\n" + std::string(token) + "\r\n";
      std::string many;
      for (int i = 0; i < 50; ++i) many += one;
      std::array<char, 65536> answers;
      while (!over && ::send(connection.socket(), many.data(), many.size(), MSG_NOSIGNAL) > 0) {
        ::recv(connection.socket(), answers.data(), answers.size(), MSG_DONTWAIT);
      }
    });
    PatientClient client(running->http_port());
    EXPECT_EQ(client.Get("/healthz")->status, 200);
    running.reset();
    over = true;
    ::shutdown(connection.socket(), SHUT_RDWR);
    asking.join();
  }
}

constexpr char kWord[] = "secret";

ServiceOptions WithWord() {
  ServiceOptions options;
  options.token = kWord;  // without it even the service's own user is a stranger
  return options;
}

std::string Asking(const std::string& headers, const std::string& body = {}) {
  return "POST /api/studies HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
         std::string(kWord) + "\r\n" + headers + "\r\n" + body;
}

// What waits for others than the service, until they are there.
class WaitingFrontend final : public Frontend {
 public:
  explicit WaitingFrontend(std::shared_future<void> there) : there_(std::move(there)) {}
  const char* name() const override { return "waiting"; }
  void Load(const TunerState&) override {}
  void Take(const std::vector<Change>&, const TunerState&) override {}
  std::vector<HttpRoute> Routes(Tuner&) override {
    return {{.method = "GET",
             .path = "/waiting/{name}",
             .operation = "Wait",
             .answer =
                 [this](const HttpCall&) {
                   there_.wait();
                   return HttpAnswer{absl::OkStatus(), "there", "text/plain"};
                 },
             .waits = true}};
  }
  void Start(Tuner&) override {}
  void Close() override {}

 private:
  const std::shared_future<void> there_;
};

TEST(HttpConnections, CallsThatWaitForOthersKeepNoCallWaiting) {
  std::promise<void> come;
  ServiceOptions options;
  options.frontends = {
      [there = come.get_future().share()] { return std::make_unique<WaitingFrontend>(there); }};
  RunningService running(options);
  std::vector<std::unique_ptr<RawConnection>> waiting;
  for (std::size_t i = 0; i <= kHttpThreads; ++i) {
    waiting.push_back(std::make_unique<RawConnection>(running.http_port()));
    waiting.back()->Send(SlowPages::Get("/waiting/for?ever"));
  }
  PatientClient client(running.http_port());
  const auto answer = client.Get("/healthz");
  come.set_value();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  for (const auto& connection : waiting) {
    EXPECT_TRUE(connection->ReadUntil("there").ends_with("there"));
  }
}

TEST(HttpConnections, WhatWaitsIsWhatAgentsAreAskedFor) {
  std::set<std::string> waits;
  for (const HttpRoute& route : OwnRoutes("", nullptr)) {
    if (route.waits) waits.insert(route.operation);
  }
  EXPECT_EQ(waits, (std::set<std::string>{"GetTrialOutput"}));
}

// What has a secret in its path, as the channel of NNI's trials.
class SecretFrontend final : public Frontend {
 public:
  const char* name() const override { return "secret"; }
  void Load(const TunerState&) override {}
  void Take(const std::vector<Change>&, const TunerState&) override {}
  std::vector<HttpRoute> Routes(Tuner&) override {
    HttpRoute route{"PUT", "/nni/v1/channel/{experiment}/{trial}/{secret}", "Put",
                    [](const HttpCall& call) {
                      return HttpAnswer{absl::OkStatus(), call.body, "text/plain"};
                    }};
    route.open = [](const HttpCall& call) {
      return call.path.at("secret") == "right" ? absl::OkStatus()
                                               : absl::NotFoundError("no such channel");
    };
    return {route};
  }
  void Start(Tuner&) override {}
  void Close() override {}
};

TEST(HttpStrangers, BodiesAreNotWaitedForBeforeASecretIsShown) {
  ServiceOptions options = WithWord();
  options.frontends = {[] { return std::make_unique<SecretFrontend>(); }};
  RunningService running(options);
  const auto put = [](const std::string& secret) {
    return "PUT /nni/v1/channel/e/t/" + secret +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
  };
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (std::size_t i = 0; i < 2 * kHttpStrangerThreads; ++i) {
    slow.push_back(std::make_unique<RawConnection>(running.http_port()));
    slow.back()->Send(put("right"));
  }
  for (const char* secret : {"wrong", "", "right/right"}) {
    RawConnection guessing(running.http_port());
    guessing.Send(put(secret));
    EXPECT_NE(guessing.ReadUntil("never").find("HTTP/1.1 40"), std::string::npos) << secret;
  }
  PatientClient client(running.http_port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  slow.front()->Send(std::string(99, ' '));
  EXPECT_NE(slow.front()->ReadUntil("\r\n\r\n{" + std::string(99, ' ')).find("200 OK"),
            std::string::npos);
}

// So many, each of which would hold a thread for ten seconds, that the client would wait in vain.
TEST(HttpStrangers, WhoDoesNotTakeAnswersIsNotWaitedFor) {
  RunningService running(WithWord());
  std::string many;
  for (int i = 0; i < 2'000; ++i) many += "GET /absent" + std::to_string(i) + " HTTP/1.1\r\n\r\n";
  std::vector<std::unique_ptr<RawConnection>> deaf;
  for (std::size_t i = 0; i < (kPatience_s / kHttpTimeout_s + 1) * kHttpStrangerThreads; ++i) {
    deaf.push_back(std::make_unique<RawConnection>(running.http_port()));
    const int few = 1;
    ::setsockopt(deaf.back()->socket(), SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    EXPECT_GT(::send(deaf.back()->socket(), many.data(), many.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
              0);
  }
  PatientClient client(running.http_port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
}

TEST(HttpStrangers, ThoseThatHaveAskedGoBeforeOneThatComes) {
  RunningService running(WithWord());
  std::vector<std::unique_ptr<RawConnection>> strangers;
  for (std::size_t i = 0; i < kMaxHttpIdleConnections; ++i) {
    strangers.push_back(std::make_unique<RawConnection>(running.http_port()));
    strangers.back()->Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_NE(strangers.back()->ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
  }
  RawConnection newcomer(running.http_port());
  pollfd oldest{strangers.front()->socket(), POLLIN, 0};
  ASSERT_EQ(::poll(&oldest, 1, -1), 1) << "it is closed";
  newcomer.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(newcomer.ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
}

TEST(HttpStrangers, UnfinishedHeadsHaveALimitTogether) {
  RunningService running(WithWord());
  const std::string head = "GET /healthz HTTP/1.1\r\nX: " + std::string(60'000, 'x');
  std::vector<std::unique_ptr<RawConnection>> unfinished;
  std::vector<pollfd> ends;
  for (std::size_t i = 0; i < 200; ++i) {
    unfinished.push_back(std::make_unique<RawConnection>(running.http_port()));
    ends.push_back({unfinished.back()->socket(), POLLRDHUP, 0});
    // Those that were closed meanwhile take no more.
    ::send(ends.back().fd, head.data(), head.size(), MSG_NOSIGNAL);
  }
  EXPECT_GT(::poll(ends.data(), ends.size(), -1), 0);
}

TEST(HttpBodies, ThatCanBeReadInTwoWaysAreRefusedByTheirHeader) {
  RunningService running(WithWord());
  for (const auto& [headers, named] : {
           std::pair{"Content-Length: 2\r\nContent-Length: 2\r\n", "Content-Length"},
           std::pair{"Content-Length: 2\r\ncontent-length: 30\r\n", "Content-Length"},
           std::pair{"Content-Length: +2\r\n", "Content-Length"},
           std::pair{"Content-Length: 2, 2\r\n", "Content-Length"},
           std::pair{"Content-Length: 0x2\r\n", "Content-Length"},
           std::pair{"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "Content-Length"},
           std::pair{"Transfer-Encoding: identity\r\n", "Transfer-Encoding"},
           std::pair{"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding"},
           std::pair{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                     "Transfer-Encoding"},
           std::pair{"Content-Encoding: gzip\r\nContent-Length: 2\r\n", "Content-Encoding"},
           std::pair{"Content-Encoding: br\r\nContent-Length: 2\r\n", "Content-Encoding"},
           std::pair{"Content-Encoding: identity, deflate\r\nContent-Length: 2\r\n",
                     "Content-Encoding"},
       }) {
    RawConnection connection(running.http_port());
    connection.Send(Asking(headers, "{}"));
    const std::string answer = connection.ReadUntil("never");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << headers << answer;
    EXPECT_NE(answer.find(std::string(named) + ": needs"), std::string::npos) << answer;
  }
}

TEST(HttpBodies, InChunksHaveTheLimitOfOthers) {
  RunningService running(WithWord());
  const std::string part = std::string(64 << 10, ' ');
  const std::string chunk = "10000\r\n" + part + "\r\n";
  for (const bool endless : {false, true}) {
    RawConnection connection(running.http_port());
    connection.Send(Asking("Transfer-Encoding: chunked\r\n"));
    std::string parts = chunk;
    if (endless) {
      // What is sent after it is closed takes the answer back, which is not what is looked at.
      while (::send(connection.socket(), parts.data(), parts.size(), MSG_NOSIGNAL) > 0) {
      }
      continue;
    }
    connection.Send(parts + "0\r\n\r\n");
    EXPECT_NE(connection.ReadUntil("}").find("malformed JSON"), std::string::npos);
  }
}

TEST(HttpHeads, WhoseHeadersCanBeReadInTwoWaysAreNone) {
  RunningService running(WithWord());
  const std::string word = std::string("Authorization: Bearer ") + kWord;
  const std::string zero(1, '\0');
  for (const std::string& head :
       {absl::StrCat("GET /api/studies HTTP/1.1\r\n", word, zero),
        absl::StrCat("GET /api/studies", zero, " HTTP/1.1\r\n", word),
        "POST /api/studies HTTP/1.1\r\n" + word +
            "\r\nTransfer-Encoding : chunked\r\nContent-Length: 2",
        "POST /api/studies HTTP/1.1\r\n" + word +
            "\r\nTransfer-Encoding: chunked\nContent-Length: 2",
        "POST /api/studies HTTP/1.1\r\n" + word +
            "\r\nTransfer-Encoding: chunked\rX: y\r\nContent-Length: 2",
        "POST /api/studies HTTP/1.1\r\n" + word +
            "\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 2",
        "POST /api/studies HTTP/1.1\r\n" + word + "\r\nContent-Length 2",
        "POST /api/studies HTTP/1.1\r\n" + word + "\r\ncontent-length: \t",
        "POST /api/studies HTTP/1.1\r\n" + word + "\r\nTransfer-Encoding:\r\nContent-Length: 2"}) {
    RawConnection connection(running.http_port());
    connection.Send(head + "\r\n\r\n{}");
    const std::string answer = connection.ReadUntil("never");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << head;
    EXPECT_NE(answer.find("NAME: VALUE"), std::string::npos) << head;
  }
}

TEST(HttpHeads, MayHaveHeadersWithoutAValue) {
  RunningService running(WithWord());
  RawConnection connection(running.http_port());
  connection.Send("GET /healthz HTTP/1.1\r\nHost:\r\nX-Empty: \r\n~!#$x:y:z\r\n\r\n");
  EXPECT_NE(connection.ReadUntil("\r\n\r\nok\n").find("200 OK"), std::string::npos);
}

TEST(HttpAnswers, AreWholeWhateverRangesAreAskedFor) {
  RunningService running(WithWord());
  PatientClient client(running.http_port());
  client.set_bearer_token_auth(kWord);
  std::string many = "bytes=0-";
  for (int i = 0; i < 300; ++i) many += ",0-";
  for (const char* path : {"/api/openapi.json", "/absent"}) {
    const auto whole = client.Get(path);
    ASSERT_TRUE(whole);
    for (const std::string& ranges : {many, std::string("bytes=0-9"), std::string("bytes=-5")}) {
      const auto answer = client.Get(path, {{"Range", ranges}});
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, whole->status) << path << ranges;
      EXPECT_EQ(answer->body, whole->body) << path << ranges;
    }
  }
}

TEST(HttpAnswers, MayNotBeShownWithinPagesOfOtherSites) {
  RunningService running;
  PatientClient client(running.http_port());
  for (const char* path : {"/", "/healthz", "/absent"}) {
    const auto answer = client.Get(path);
    EXPECT_EQ(answer->get_header_value("X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(answer->get_header_value("X-Frame-Options"), "SAMEORIGIN") << path;
  }
}

}  // namespace
}  // namespace espalier
