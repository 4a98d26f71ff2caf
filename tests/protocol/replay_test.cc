// What former releases, and this one, have said is played again to service, agent and replica.

#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/protocol/client_calls.h"
#include "tests/protocol/recording.h"
#include "tests/trial_runner/agent/scripted_service.h"
#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/processes/frames.h"
#include "trial_runner/control/socket_control_plane.h"
#include "tuner.grpc.pb.h"
#include "tuner/server/service.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

constexpr std::chrono::seconds kPatience{60};

Recording Recorded(const std::string& release) {
  const auto recording = ReadRecording(fs::path(RECORDINGS) / release / "pool.rec");
  EXPECT_TRUE(recording.ok()) << recording.status();
  return recording.ok() ? *recording : Recording();
}

template <typename T>
T Parse(const std::string& bytes) {
  T message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

// What differs from run to run: times, and whether a trial has begun when the answer is made, which
// is decided beside the thread that answers.
void ClearTimes(Message& message) {
  static const std::set<std::string> kTimes = {
      "created_at",   "started_at", "ended_at", "elapsed_s", "remaining_s",
      "at",           "from",       "to",       "spent",     "pid",
      "slot_seconds", "decisions",  "goodput",  "promise",   "directory",
      "resizes",      "spans",      "reason",   "greeting",  "trials_by_state"};
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const auto& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (kTimes.contains(std::string(field->name()))) {
      reflection.ClearField(&message, field);
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE &&
               !field->is_map()) {
      if (!field->is_repeated()) {
        ClearTimes(*reflection.MutableMessage(&message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        ClearTimes(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    }
  }
}

// All that was said then is said now; what has been added since is no difference.
template <typename T>
void ExpectSaid(T then, T now, const std::string& where) {
  ClearTimes(then);
  ClearTimes(now);
  MessageDifferencer differencer;
  differencer.set_scope(MessageDifferencer::PARTIAL);
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(then, now)) << where << ":\n" << differences;
}

template <typename T>
void ExpectAnswer(const std::string& then, const std::string& now, const std::string& where) {
  ExpectSaid(Parse<T>(then), Parse<T>(now), where);
}

void ExpectAnswer(const std::string& method, const std::string& then, const std::string& now) {
  using Compare = void (*)(const std::string&, const std::string&, const std::string&);
  static const std::map<std::string, Compare> kAnswers = {
      {"Ask", ExpectAnswer<v1::TrialRecord>},
      {"CancelTrial", ExpectAnswer<v1::TrialRecord>},
      {"CreateStudy", ExpectAnswer<v1::Study>},
      {"DeleteStudy", ExpectAnswer<v1::Study>},
      {"DrainNode", ExpectAnswer<v1::Node>},
      {"Enqueue", ExpectAnswer<v1::TrialRecord>},
      {"GetBestTrial", ExpectAnswer<v1::TrialRecord>},
      {"GetPool", ExpectAnswer<v1::Pool>},
      {"GetStudy", ExpectAnswer<v1::StudyDetails>},
      {"GetTrial", ExpectAnswer<v1::TrialRecord>},
      {"GetTrialOutput", ExpectAnswer<v1::TrialOutput>},
      {"ListStudies", ExpectAnswer<v1::ListStudiesResponse>},
      {"PinTrial", ExpectAnswer<v1::Trial>},
      {"Report", ExpectAnswer<v1::Verdict>},
      {"ResumeStudy", ExpectAnswer<v1::Study>},
      {"SetAttributes", ExpectAnswer<v1::TrialRecord>},
      {"ShouldPrune", ExpectAnswer<v1::Verdict>},
      {"StopStudy", ExpectAnswer<v1::Study>},
      {"Tell", ExpectAnswer<v1::TellResponse>},
  };
  ASSERT_TRUE(kAnswers.contains(method)) << method;
  kAnswers.at(method)(then, now, method);
}

bool Orders(const v1::ServiceMessage& message) {
  return !message.has_heartbeat() && !message.has_acknowledge();
}

// The recorded agent's end of a stream to a service of today.
class RecordedAgent {
 public:
  explicit RecordedAgent(const std::string& address)
      : stub_(v1::Tuner::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        stream_(stub_->Agent(&context_)),
        reader_([this] { Read(); }) {}
  ~RecordedAgent() {
    context_.TryCancel();
    reader_.join();
  }
  RecordedAgent(const RecordedAgent&) = delete;
  RecordedAgent& operator=(const RecordedAgent&) = delete;

  void Say(const std::string& bytes) { stream_->Write(Parse<v1::AgentMessage>(bytes)); }

  // Waits until the service has confirmed so much; false: it has not.
  bool AwaitAcknowledged(std::int64_t sequence) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, kPatience, [&] { return acknowledged_ >= sequence; });
  }

  // The next order; none came: KIND_NOT_SET.
  v1::ServiceMessage Next() {
    std::unique_lock lock(mutex_);
    heard_.wait_for(lock, kPatience, [this] { return !orders_.empty(); });
    if (orders_.empty()) return {};
    v1::ServiceMessage next = orders_.front();
    orders_.pop_front();
    return next;
  }

 private:
  void Read() {
    v1::ServiceMessage message;
    while (stream_->Read(&message)) {
      const std::lock_guard lock(mutex_);
      if (message.has_acknowledge()) acknowledged_ = message.acknowledge().sequence();
      if (Orders(message)) orders_.push_back(message);
      heard_.notify_all();
    }
  }

  grpc::ClientContext context_;
  const std::unique_ptr<v1::Tuner::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServiceMessage>> stream_;
  std::mutex mutex_;
  std::condition_variable heard_;
  std::deque<v1::ServiceMessage> orders_;
  std::int64_t acknowledged_ = 0;
  std::thread reader_;
};

class Replay : public ::testing::TestWithParam<std::string> {
 protected:
  Replay() {
    std::string name = (fs::temp_directory_path() / "replay-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Replay() override { fs::remove_all(folder_); }

  fs::path folder_;
};

// Nothing that was said then is unknown now, and every message is still of a kind.
TEST_P(Replay, EveryWordIsStillKnown) {
  std::set<std::string> kinds;
  const auto known = [&](const Message& message, const std::string& by) {
    const auto& reflection = *message.GetReflection();
    EXPECT_EQ(reflection.GetUnknownFields(message).field_count(), 0) << by;
    const auto* kind = reflection.GetOneofFieldDescriptor(
        message, message.GetDescriptor()->FindOneofByName("kind"));
    ASSERT_NE(kind, nullptr) << by;
    kinds.insert(by + " " + std::string(kind->name()));
  };
  for (const Said& said : Recorded(GetParam())) {
    if (said.by == "agent") known(Parse<v1::AgentMessage>(said.bytes), said.by);
    if (said.by == "service") known(Parse<v1::ServiceMessage>(said.bytes), said.by);
    if (said.by.starts_with("call ")) kinds.insert(said.by);
  }
  for (const char* kind : {"agent hello", "agent started", "agent from_replica", "agent exited",
                           "agent output", "agent leaving", "service welcome", "service start",
                           "service to_replica", "service read_output", "service acknowledge"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind << " is not in the recording";
  }
  for (const std::string& method : Methods())
    EXPECT_TRUE(kinds.contains("call " + method)) << method;
}

TEST_P(Replay, TheServiceAnswersAsItDid) {
  const auto service = Service::Start({});
  ASSERT_TRUE(service.ok()) << service.status();
  const std::string address = (*service)->grpc_address();
  std::unique_ptr<RecordedAgent> agent;
  std::future<absl::StatusOr<std::string>> answer;
  for (const Said& said : Recorded(GetParam())) {
    if (said.by.starts_with("call ")) {
      answer = std::async(std::launch::async,
                          [=] { return CallMethod(address, said.by.substr(5), said.bytes); });
    } else if (said.by.starts_with("answer ")) {
      const absl::StatusOr<std::string> now = answer.get();
      ASSERT_TRUE(now.ok()) << said.by << ": " << now.status();
      ExpectAnswer(said.by.substr(7), said.bytes, *now);
    } else if (said.by == "agent") {
      if (agent == nullptr) agent = std::make_unique<RecordedAgent>(address);
      agent->Say(said.bytes);
    } else if (const auto then = Parse<v1::ServiceMessage>(said.bytes); Orders(then)) {
      ExpectSaid(then, agent->Next(), "the service's order");
    } else if (then.has_acknowledge()) {
      EXPECT_TRUE(agent->AwaitAcknowledged(then.acknowledge().sequence()));
    }
  }
  agent.reset();
  (*service)->Shutdown();
}

bool IsEvent(const v1::AgentMessage& message) {
  return !message.has_hello() && !message.has_heartbeat();
}

TEST_P(Replay, TheAgentDoesAsItDid) {
  ScriptedService service;
  AgentOptions options;
  options.service_address = service.address();
  options.node_name = "oak";
  options.directory = (folder_ / "agent").string();
  auto agent = Agent::Start(options);
  ASSERT_TRUE(agent.ok()) << agent.status();
  ASSERT_TRUE((*agent)->WaitConnected(kPatience.count()));
  std::size_t events = 0;
  for (const Said& said : Recorded(GetParam())) {
    if (said.by == "answer GetTrialOutput") std::ofstream(folder_ / "seen") << "\n";
    if (said.by == "agent") {
      const auto then = Parse<v1::AgentMessage>(said.bytes);
      if (then.has_leaving()) (*agent)->LeaveWithin(then.leaving().within_s());
      if (!IsEvent(then)) continue;
      ++events;
      ASSERT_TRUE(service.Await([&](const auto& all) { return all.size() >= events; }));
      ExpectSaid(then, service.events()[events - 1], "the agent's event");
    } else if (said.by == "service") {
      auto message = Parse<v1::ServiceMessage>(said.bytes);
      if (message.has_heartbeat() || message.has_welcome()) continue;
      if (message.has_start()) message.mutable_start()->set_directory(folder_.string());
      service.Send(message);
    }
  }
  service.Close();
}

TEST_P(Replay, AReplicaObeysAsItDid) {
  std::int64_t generation = 0;
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const auto replica = MakeSocketControlPlane(sockets[0]);
  for (const Said& said : Recorded(GetParam())) {
    if (said.by != "service") continue;
    const auto message = Parse<v1::ServiceMessage>(said.bytes);
    if (!message.has_to_replica()) continue;
    const v1::Regroup& regroup = message.to_replica().command().regroup();
    const std::string frame = Frame(message.to_replica().command().SerializeAsString());
    ASSERT_EQ(send(sockets[1], frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
    const Membership membership = replica->WaitAbove(generation);
    EXPECT_EQ(membership.generation, ++generation);
    ASSERT_EQ(static_cast<int>(membership.members.size()), regroup.members_size());
    ASSERT_EQ(membership.members.size(), 1U);
    EXPECT_EQ(membership.members[0].replica.value, message.to_replica().replica_id());
    EXPECT_EQ(membership.members[0].node.value, 1);
    EXPECT_EQ(membership.members[0].address, "127.0.0.1:9");
    EXPECT_EQ(membership.abandon, regroup.abandon());
  }
  EXPECT_GT(generation, 0);
}

std::vector<std::string> Releases() {
  std::vector<std::string> releases;
  for (const auto& entry : fs::directory_iterator(RECORDINGS)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("release-")) releases.push_back(name);
  }
  return releases;
}

INSTANTIATE_TEST_SUITE_P(Releases, Replay, ::testing::ValuesIn(Releases()),
                         [](const auto& release) {
                           std::string name = release.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace espalier
