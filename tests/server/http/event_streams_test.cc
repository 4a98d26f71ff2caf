#include "tuner/server/http/event_streams.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/http/described_events.h"
#include "tests/server/patient_client.h"
#include "tests/server/port_of.h"
#include "tests/server/running_service.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/sha256.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/http/http_server.h"

namespace espalier {
namespace {

using EventJson = nlohmann::json;
using testing::HasSubstr;

constexpr char kPath[] = "/api/view/events";

struct SentEvent {
  std::string name;
  std::string id;
  EventJson data;
};

// A page, as far as it listens. Fails where nothing comes for a minute.
class EventSource {
 public:
  EventSource(int port, const std::string& path, const std::string& headers = "",
              int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers, "\r\n");
    EXPECT_EQ(::send(socket_, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  ~EventSource() { ::close(socket_); }
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  std::string Head() { return ReadUntil("\r\n\r\n"); }

  // Empty at the end of the stream. Each is held to docs/openapi.json.
  SentEvent Next() {
    const std::string text = ReadUntil("\n\n");
    SentEvent event;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      at += line.size() + 1;
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("data: ")) event.data = EventJson::parse(line.substr(6));
    }
    if (event.name.empty()) return event;
    EventJson whole = {{"event", event.name}, {"data", event.data}};
    if (!event.id.empty()) whole["id"] = event.id;
    EXPECT_EQ(DescribedEvents::Against(whole), "");
    return event;
  }
  // The next event of that name; without one where the stream has ended.
  SentEvent Await(const std::string& name) {
    SentEvent event = Next();
    while (!event.name.empty() && event.name != name) event = Next();
    return event;
  }
  bool Ended() {
    while (!Next().name.empty()) {
    }
    return true;
  }

 private:
  std::string ReadUntil(const std::string& last) {
    std::string text;
    char c = 0;
    while (!text.ends_with(last)) {
      const ssize_t got = ::recv(socket_, &c, 1, 0);
      if (got < 0 && errno == EINTR) continue;
      EXPECT_TRUE(got >= 0 || errno == ECONNRESET) << "nothing comes";
      if (got <= 0) return "";
      text += c;
    }
    return text;
  }

  const int socket_;
};

// The streams of a service of whose state the test decides.
class EventStreamsTest : public testing::Test {
 protected:
  void Start(EventStreamLimits limits = {}, AccessControlOptions access = {},
             std::size_t most_entries = kMaxLogEntries) {
    log_ = std::make_unique<RevisionLog>("a1", most_entries);
    access_ = std::make_unique<AccessControl>(std::move(access));
    limits.news_ms = 1;
    limits.gather_ms = 1;
    streams_ = std::make_unique<EventStreams>(*log_, tuner_, limits);
    auto started = HttpServer::Start({{"127.0.0.1", 0}}, {}, *access_, EventRoutes(streams_.get()),
                                     tuner_, metrics_);
    ASSERT_TRUE(started.ok()) << started.status();
    http_ = *std::move(started);
    port_ = PortOf(http_->address());
    StudySpec spec;
    spec.name = "mnist";
    Commit({StudyCreated{StudyId(1), spec, Time{1}}});
  }
  ~EventStreamsTest() override {
    if (http_) http_->Stop();
    if (streams_) streams_->Stop();
  }

  void Commit(const std::vector<Change>& changes) {
    for (const Change& change : changes) state_.Apply(change);
    log_->Take(changes, state_);
  }
  void CreateTrials(std::int64_t first, std::int64_t last) {
    std::vector<Change> changes;
    for (std::int64_t id = first; id <= last; ++id) {
      changes.emplace_back(TrialCreated{TrialId(id), StudyId(1), id - 1, {}, Time{1}});
    }
    Commit(changes);
  }
  std::unique_ptr<EventSource> Open(const std::string& query = "",
                                    const std::string& headers = "") {
    auto source = std::make_unique<EventSource>(port_, kPath + query, headers);
    EXPECT_THAT(source->Head(), HasSubstr("200 OK\r\nContent-Type: text/event-stream"));
    return source;
  }
  void AwaitOpen(std::size_t streams) const {
    while (streams_->open() != streams) std::this_thread::yield();
  }

  DirectTuner tuner_;
  Metrics metrics_;
  TunerState state_;
  std::unique_ptr<RevisionLog> log_;
  std::unique_ptr<AccessControl> access_;
  std::unique_ptr<EventStreams> streams_;
  std::unique_ptr<HttpServer> http_;
  int port_ = 0;
};

TEST_F(EventStreamsTest, SaysHelloAndThenWhatChanges) {
  Start();
  const auto page = Open();
  const SentEvent hello = page->Next();
  EXPECT_EQ(hello.name, "hello");
  EXPECT_EQ(hello.id, "a1:1");
  EXPECT_EQ(hello.data["version"], 1);
  CreateTrials(1, 1);
  const SentEvent changed = page->Next();
  EXPECT_EQ(changed.name, "changed");
  EXPECT_EQ(changed.id, "a1:2");
  EXPECT_EQ(changed.data["trials"], EventJson::parse(R"([{"id": 1, "study_id": 1, "number": 0}])"));
  Commit({ValueReported{.id = TrialId(1), .value = {.step = 1, .value = 0.5, .at = Time{2}}}});
  const SentEvent values = page->Next();
  EXPECT_EQ(values.name, "values");
  EXPECT_EQ(values.data["value"], EventJson::parse("[0.5]"));
  EXPECT_EQ(page->Next().id, "a1:3");
}

TEST(EventStreams, AreDescribedKindByKind) {
  std::set<std::string> described;
  for (const EventJson& kind : DescribedEvents::Schema()["anyOf"]) {
    described.insert(kind["properties"]["event"]["enum"][0].get<std::string>());
  }
  EXPECT_EQ(described,
            (std::set<std::string>{"alive", "changed", "hello", "live", "resync", "values"}));
  const EventJson data = {{"incarnation", "a1"}, {"revision", 1}, {"now", 1.5}};
  const auto told = [](const EventJson& said, const std::string& name) {
    return DescribedEvents::Against({{"event", name}, {"id", "a1:1"}, {"data", said}});
  };
  EXPECT_EQ(told(data, "resync"), "");
  EXPECT_NE(told(data, "hello"), "") << "which has a version";
  EXPECT_NE(told(data, "renamed"), "");
  EventJson more = data;
  more["further"] = 1;
  EXPECT_THAT(told(more, "resync"), HasSubstr("further is new"));
  more = data;
  more["revision"] = 0.5;
  EXPECT_THAT(told(more, "resync"), HasSubstr("0.5"));
}

TEST_F(EventStreamsTest, GoesOnWhereAStreamBroke) {
  Start();
  CreateTrials(1, 2);
  for (const auto& page : {Open("?after=a1:1"), Open("", "Last-Event-ID: a1:1\r\n"),
                           Open("?after=a1:3", "Last-Event-ID: a1:1\r\n")}) {
    EXPECT_EQ(page->Next().id, "a1:1");
    const SentEvent changed = page->Next();
    EXPECT_EQ(changed.name, "changed");
    EXPECT_EQ(changed.data["trials"].size(), 2u);
  }
}

TEST_F(EventStreamsTest, AnotherIncarnationReadsAllAgain) {
  Start();
  const auto page = Open("?after=b2:1");
  EXPECT_EQ(page->Next().name, "hello");
  const SentEvent resync = page->Next();
  EXPECT_EQ(resync.name, "resync");
  EXPECT_EQ(resync.id, "a1:1");
}

TEST_F(EventStreamsTest, WhoFellOutOfTheLogReadsAllAgain) {
  Start({}, {}, 4);
  CreateTrials(1, 8);
  const auto page = Open("?after=a1:2");
  EXPECT_EQ(page->Next().name, "hello");
  EXPECT_EQ(page->Next().name, "resync");
  CreateTrials(9, 9);
  EXPECT_EQ(page->Await("changed").data["trials"][0]["id"], 9);
}

TEST_F(EventStreamsTest, ManyTrialsAreToldFrameByFrame) {
  Start();
  const auto page = Open();
  page->Next();
  CreateTrials(1, 1200);
  std::set<std::int64_t> told;
  for (const bool more : {true, true, false}) {
    const SentEvent changed = page->Next();
    EXPECT_EQ(changed.data["more"], more);
    for (const EventJson& trial : changed.data["trials"])
      told.insert(trial["id"].get<std::int64_t>());
  }
  EXPECT_EQ(told.size(), 1200u);
}

TEST_F(EventStreamsTest, OneStudyAlone) {
  Start();
  StudySpec other;
  other.name = "other";
  Commit({StudyCreated{StudyId(2), other, Time{1}}});
  const auto page = Open("?study=2");
  page->Next();
  CreateTrials(1, 1);
  Commit({StudyAttributeSet{StudyId(2), false, "note", "\"x\""}});
  EXPECT_EQ(page->Await("changed").data["studies"], EventJson::parse("[2]"));
}

TEST_F(EventStreamsTest, RefusesWhatIsNoCursorAndNoStudy) {
  Start();
  PatientClient client(port_);
  const auto cursor = client.Get(std::string(kPath) + "?after=yesterday");
  EXPECT_EQ(cursor->status, 400);
  EXPECT_THAT(cursor->body, HasSubstr("INCARNATION:REVISION"));
  EXPECT_EQ(client.Get(std::string(kPath) + "?study=mnist")->status, 400);
  EXPECT_EQ(client.Head(kPath)->status, 200);
  EXPECT_EQ(streams_->open(), 0u);
}

TEST_F(EventStreamsTest, OneTooManyIsToldToComeAgain) {
  Start({.most = 2});
  auto first = Open();
  const auto second = Open();
  EventSource third(port_, kPath);
  const std::string refused = third.Head();
  EXPECT_THAT(refused, HasSubstr("503"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 10"));
  first.reset();
  AwaitOpen(1);
  Open();
}

TEST_F(EventStreamsTest, TheirNumberIsWhatPagesAreTold) {
  EXPECT_EQ(EventStreamLimits{}.most, 128u);
  Start();
  std::vector<std::unique_ptr<EventSource>> pages;
  for (int i = 0; i < 128; ++i) pages.push_back(Open());
  EventSource one_more(port_, kPath);
  EXPECT_THAT(one_more.Head(), HasSubstr("503"));
  CreateTrials(1, 1);
  for (const auto& page : pages) EXPECT_EQ(page->Await("changed").data["trials"].size(), 1u);
}

TEST_F(EventStreamsTest, WhoDoesNotReadKeepsNobodyWaiting) {
  Start({.rights_ms = 20, .silent_ms = 100, .send_buffer = 4096});
  EventSource stopped(port_, kPath, "", 1024);
  auto page = Open();
  AwaitOpen(2);
  CreateTrials(1, 500);
  // As long as the kernel takes something for the one that has stopped it is not silent.
  bool alone = false;
  for (int tries = 0; !alone && tries < 10000; ++tries) {
    std::vector<Change> changes;
    for (std::int64_t id = 1; id <= 500; ++id) changes.emplace_back(TrialPinned{TrialId(id), 1});
    Commit(changes);
    std::int64_t seen = 0;
    while (seen < log_->revision()) {
      const SentEvent changed = page->Await("changed");
      if (changed.name.empty()) break;
      seen = changed.data["revision"].get<std::int64_t>();
    }
    if (seen == log_->revision()) {
      alone = streams_->open() == 1;
    } else {
      page = Open();  // on a busy machine it has been silent for as long
    }
  }
  ASSERT_TRUE(alone) << "who does not read is still sent what comes";
  EXPECT_TRUE(stopped.Ended());
}

TEST_F(EventStreamsTest, EndsWithTheRights) {
  Start({.rights_ms = 20}, {.no_loopback_trust = true});
  const AccessToken token = NewAccessToken("");
  KeptToken kept{.id = token.id,
                 .hash = HashOf(token.secret),
                 .role = "view",
                 .name = "ada",
                 .created = Time{1}};
  access_->Take({TokenKept{kept}});
  EventSource nobody(port_, kPath);
  EXPECT_THAT(nobody.Head(), HasSubstr("401"));
  const auto page = Open("", "Authorization: Bearer " + token.text() + "\r\n");
  EXPECT_EQ(page->Next().name, "hello");
  kept.removed = Time{2};
  access_->Take({TokenKept{kept}});
  EXPECT_TRUE(page->Ended());
  AwaitOpen(0);
}

TEST_F(EventStreamsTest, GivesSignsOfLife) {
  Start({.alive_ms = 10});
  const auto page = Open();
  EXPECT_TRUE(page->Await("alive").data.contains("now"));
}

TEST_F(EventStreamsTest, EndsWithTheService) {
  Start();
  const auto page = Open();
  page->Next();
  streams_->Stop();
  EXPECT_TRUE(page->Ended());
  EventSource late(port_, kPath);
  EXPECT_TRUE(late.Ended());
}

TEST(EventStreams, FollowARunningService) {
  RunningService running;
  EventSource page(running.http_port(), kPath);
  page.Head();
  EXPECT_EQ(page.Next().name, "hello");
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  EXPECT_EQ(page.Await("changed").data["studies"], EventJson::parse("[1]"));
  ScriptedAgent agent(running, "oak", 1, "run-1");
  const auto started = agent.AwaitStart();
  EXPECT_EQ(page.Await("live").data["trial_id"], EventJson::array({started.trial_id()}));
  agent.Report(started.replica_id(), 1, 0.25);
  EXPECT_EQ(page.Await("values").data["value"], EventJson::parse("[0.25]"));
}

}  // namespace
}  // namespace espalier
