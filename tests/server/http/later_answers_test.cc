#include "tuner/server/http/later_answers.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/http/raw_connection.h"
#include "tests/server/long_draws.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"
#include "tuner/server/http/http_connections.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {
namespace {

std::string GetRequest(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

// Answers each call with its name and body when the test says so.
class LaterFrontend final : public Frontend {
 public:
  class Calls {
   public:
    void Add(std::string name, std::function<void(HttpAnswer)> done) {
      const std::lock_guard lock(mutex_);
      calls_.emplace_back(std::move(name), std::move(done));
      changed_.notify_all();
    }
    void Await(std::size_t calls) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return calls_.size() == calls; });
    }
    void TakeBack() {
      const std::lock_guard lock(mutex_);
      ++taken_back_;
      changed_.notify_all();
    }
    void AwaitTakenBack(std::size_t calls) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return taken_back_ == calls; });
    }
    void AnswerAll(std::size_t calls) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return calls_.size() == calls; });
      for (const auto& [name, done] : calls_) done({absl::OkStatus(), name, "text/plain"});
      calls_.clear();
    }

   private:
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::size_t taken_back_ = 0;
    std::vector<std::pair<std::string, std::function<void(HttpAnswer)>>> calls_;
  };

  explicit LaterFrontend(Calls& calls) : calls_(calls) {}
  const char* name() const override { return "later"; }
  void Load(const TunerState&) override {}
  void Take(const std::vector<Change>&, const TunerState&) override {}
  std::vector<HttpRoute> Routes(Tuner&) override {
    const auto answer = [this](const HttpCall& call) {
      HttpAnswer later;
      later.later = [this, name = call.path.at("name"),
                     body = call.body](std::function<void(HttpAnswer)> done) {
        if (name == "throw") throw std::runtime_error("while it begins");
        calls_.Add(name + ":" + body, std::move(done));
        return [this] { calls_.TakeBack(); };
      };
      return later;
    };
    return {{"POST", "/later/{name}", "Later", answer}, {"GET", "/later/{name}", "Later", answer}};
  }
  void Start(Tuner&) override {}
  void Close() override {}

 private:
  Calls& calls_;
};

std::string Later(const std::string& name, const std::string& headers, const std::string& body) {
  return "POST /later/" + name + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

ServiceOptions WithLater(LaterFrontend::Calls& calls) {
  ServiceOptions options;
  options.frontends = {[&calls] { return std::make_unique<LaterFrontend>(calls); }};
  return options;
}

TEST(LaterAnswers, KeepNoThread) {
  LaterFrontend::Calls calls;
  RunningService running(WithLater(calls));
  constexpr std::size_t kMany = kHttpThreads + kHttpWaitThreads + 1;
  std::vector<std::unique_ptr<RawConnection>> waiting;
  for (std::size_t i = 0; i < kMany; ++i) {
    waiting.push_back(std::make_unique<RawConnection>(running.http_port()));
    waiting.back()->Send(Later(std::to_string(i), "", "body"));
  }
  PatientClient client(running.http_port());
  for (const char* path : {"/healthz", "/api/studies"}) {
    const auto answer = client.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path;
  }
  calls.AnswerAll(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    const std::string body = "\r\n\r\n" + std::to_string(i) + ":body";
    EXPECT_TRUE(waiting[i]->ReadUntil(body).ends_with(body)) << i;
    waiting[i]->Send(GetRequest("/healthz"));  // the connection goes on
    EXPECT_NE(waiting[i]->ReadUntil("ok\n").find("200 OK"), std::string::npos) << i;
  }
}

TEST(LaterAnswers, AreThoseOfTheirOwnRequests) {
  LaterFrontend::Calls calls;
  RunningService running(WithLater(calls));
  RawConnection connection(running.http_port());
  // The client asks whether the body may come; what it calls an answer is nobody's; and the next
  // request has come before the answer.
  std::string asks = Later("one", "Expect: 100-continue\r\nEspalier-Later: 7\r\n", "x");
  asks.pop_back();
  connection.Send(asks);
  EXPECT_EQ(connection.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.Send("x" + Later("two", "Connection: close\r\n", "y"));
  calls.AnswerAll(1);
  const std::string first = connection.ReadUntil("one:x");
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200 OK")) << first;
  EXPECT_EQ(first.find("Espalier-Later"), std::string::npos) << first;
  calls.AnswerAll(1);
  const std::string second = connection.ReadUntil("as long as the connection lasts");
  EXPECT_TRUE(second.starts_with("HTTP/1.1 200 OK") && second.ends_with("two:y")) << second;
  // What has come with a request that has no body is no request.
  RawConnection unread(running.http_port());
  const std::string rest = GetRequest("/healthz");
  unread.Send("GET /later/three HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(rest.size()) + "\r\n\r\n" + rest);
  calls.AnswerAll(1);
  EXPECT_TRUE(unread.ReadUntil("as above").ends_with("three:"));
  // A form's body has been read, too.
  RawConnection form(running.http_port());
  form.Send(Later("four", "Content-Type: multipart/form-data; boundary=x\r\n",
                  "--x\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n1\r\n--x--\r\n"));
  calls.AnswerAll(1);
  const std::string of_form = form.ReadUntil("four:");
  EXPECT_TRUE(of_form.starts_with("HTTP/1.1 200 OK")) << of_form;
  RawConnection thrown(running.http_port());
  thrown.Send(Later("throw", "Connection: close\r\n", ""));
  EXPECT_TRUE(thrown.ReadUntil("as above").starts_with("HTTP/1.1 500"));
}

TEST(LaterAnswers, AreSoManyAndNoMore) {
  const LaterAnswers::Start never = [](const auto&) { return nullptr; };
  LaterAnswers answers(1);
  ASSERT_TRUE(answers.Add("Ask", false, never).ok());
  const auto refused = answers.Add("Ask", false, never);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.status().message(),
            "busy: 1 calls wait for what takes long, the most that may; try again later");
}

// As what waits for a draw does, it is answered once it is taken back.
TEST(LaterAnswers, WhoHangsUpGivesTheirPlaceBack) {
  const LaterAnswers::Start waits = [](auto done) {
    return [done = std::move(done)] { done({absl::CancelledError("gone"), ""}); };
  };
  LaterAnswers answers(1);
  for (const bool before_it_begins : {false, true}) {
    const auto name = answers.Add("Ask", false, waits);
    ASSERT_TRUE(name.ok()) << name.status();
    bool answered = false;
    if (before_it_begins) answers.HungUp(*name);
    answers.Begin(*name, [&answered] { answered = true; });
    EXPECT_EQ(answered, before_it_begins);
    if (!before_it_begins) answers.HungUp(*name);
    EXPECT_TRUE(answered);
    EXPECT_TRUE(absl::IsCancelled(answers.Take(*name).answer.status));
    answers.HungUp(*name);
  }
}

TEST(LaterAnswers, AreTakenBackOnceAClientHangsUp) {
  LaterFrontend::Calls calls;
  RunningService running(WithLater(calls));
  RawConnection stays(running.http_port());
  stays.Send(Later("stays", "", "") + GetRequest("/healthz"));  // the next one waits, too
  {
    RawConnection goes(running.http_port());
    goes.Send(Later("goes", "", ""));
    calls.Await(2);
  }
  calls.AwaitTakenBack(1);
  calls.AnswerAll(2);
  EXPECT_NE(stays.ReadUntil("ok\n").find("stays:"), std::string::npos);
  calls.AwaitTakenBack(1);
}

TEST(LaterAnswers, AnAskWhoseClientHangsUpMakesNoTrial) {
  RunningService running;
  PatientClient client(running.http_port());
  ASSERT_TRUE(MakeStudyOfLongDraws(client));
  {
    RawConnection goes(running.http_port());
    goes.Send(GetRequest("/healthz"));  // who has connected is found out while the socket is there
    ASSERT_NE(goes.ReadUntil("ok\n").find("ok\n"), std::string::npos);
    goes.Send(
        "POST /api/studies/long/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  }
  EXPECT_EQ(CodeOfNextAsk(client, "http"), "CANCELLED");
}

// Whatever a stranger was answered, its next request is a stranger's, too.
TEST(LaterAnswers, AfterOneAStrangerIsStillOne) {
  std::mutex mutex;
  std::condition_variable held;
  std::set<std::thread::id> holding;  // all threads of strangers, in the end
  std::vector<std::thread::id> after;
  const auto server = MakeHttpServer(
      nullptr, {.later = [](const std::string&, const std::function<void()>& answered) {
        std::thread(answered).join();
      }});
  server->Get("/hold", [&](const httplib::Request&, httplib::Response& response) {
    std::unique_lock lock(mutex);
    holding.insert(std::this_thread::get_id());
    held.notify_all();
    held.wait(lock, [&] { return holding.size() == kHttpStrangerThreads; });
    response.set_content("held", "text/plain");
  });
  server->Get("/later", [&](const httplib::Request& request, httplib::Response& response) {
    if (!request.has_header(kLaterHeader)) return response.set_header(kLaterHeader, "one");
    after.push_back(std::this_thread::get_id());
    response.set_content("late", "text/plain");
  });
  server->Get("/next", [&](const httplib::Request&, httplib::Response& response) {
    after.push_back(std::this_thread::get_id());
    response.set_content("next", "text/plain");
  });
  const int port = server->bind_to_any_port("127.0.0.1");
  std::thread listens([&] { server->listen_after_bind(); });
  while (!server->is_running()) std::this_thread::yield();
  const auto get = [](const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  };
  std::vector<std::unique_ptr<RawConnection>> strangers;
  for (std::size_t i = 0; i < kHttpStrangerThreads; ++i) {
    strangers.push_back(std::make_unique<RawConnection>(port));
    strangers.back()->Send(get("/hold"));
  }
  for (const auto& stranger : strangers) EXPECT_TRUE(stranger->ReadUntil("held").ends_with("held"));
  RawConnection connection(port);
  connection.Send(get("/later") + get("/next"));
  EXPECT_TRUE(connection.ReadUntil("next").ends_with("next"));
  server->stop();
  listens.join();
  ASSERT_EQ(after.size(), 2U);
  EXPECT_TRUE(holding.contains(after[0])) << "the late answer";
  EXPECT_TRUE(holding.contains(after[1])) << "the next request";
}

TEST(LaterAnswers, AreThoseOfAsks) {
  for (const HttpRoute& route : OperationRoutes()) {
    if (std::string_view(route.operation) != "Ask") continue;
    DirectTuner tuner;
    const std::string body;
    const HttpAnswer answer = route.answer({.tuner = tuner,
                                            .path = {{"study", "none"}},
                                            .query = {},
                                            .request_key = {},
                                            .body = body,
                                            .service_url = {}});
    ASSERT_TRUE(answer.later);
    std::optional<HttpAnswer> given;
    EXPECT_TRUE(answer.later([&](HttpAnswer later) { given = std::move(later); }));
    ASSERT_TRUE(given);
    EXPECT_EQ(given->status.code(), absl::StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace espalier
