// record_protocol FILE: has this release's service, agent and clients speak to each other, and
// writes down every word. tests/protocol/release-*/ holds what each release said.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tests/protocol/client_calls.h"
#include "tests/protocol/relay.h"
#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/processes/frames.h"
#include "tuner.pb.h"
#include "tuner/server/service.h"

namespace espalier {
namespace {

// What a shell's printf writes as these bytes.
std::string Octal(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) absl::StrAppendFormat(&text, "\\%03o", static_cast<unsigned char>(c));
  return text;
}

std::string Say(const v1::ReplicaMessage& message) {
  return absl::StrFormat("printf '%s' >&3\n", Octal(Frame(message.SerializeAsString())));
}

// An elastic replica in shell: it needs nothing that a later release could change.
std::string ElasticReplica() {
  std::string script;
  v1::ReplicaMessage ready;
  ready.mutable_ready()->set_address("127.0.0.1:9");
  ready.mutable_ready()->set_total_steps(2);
  v1::BatchBounds& batch = *ready.mutable_ready()->mutable_batch();
  batch.set_initial_batch_size(64);
  batch.set_max_batch_size(256);
  batch.set_min_atomic_batch_size(16);
  batch.set_max_atomic_batch_size(128);
  batch.set_accumulation(true);
  script += Say(ready);
  script += "head -c 1 <&3 > /dev/null\n";  // its first Regroup
  v1::ReplicaMessage regrouped;
  regrouped.mutable_regrouped()->set_generation(1);
  regrouped.mutable_regrouped()->set_pause_s(0.25);
  script += Say(regrouped);
  // One, because an agent may put two together.
  v1::ReplicaMessage progress;
  progress.mutable_progress()->set_generation(1);
  progress.mutable_progress()->set_step(10);
  progress.mutable_progress()->set_global_batch_size(64);
  progress.mutable_progress()->set_atomic_batch_size(64);
  script += Say(progress);
  for (const int step : {1, 2}) {
    v1::ReplicaMessage report;
    report.mutable_report()->set_step(step);
    report.mutable_report()->set_value(1.0 / step);
    report.mutable_report()->set_progress(10 * step);
    script += Say(report);
  }
  v1::ReplicaMessage saved;
  saved.mutable_checkpoint()->set_path("/checkpoints/step-20.pt");
  saved.mutable_checkpoint()->set_step(20);
  script += "echo trained\n";  // before the word at which the recorder asks for it
  script += Say(saved);
  // Until the recorder has asked for what was printed.
  script += "while [ ! -e seen ]; do sleep 0.05; done\n";
  v1::ReplicaMessage finished;
  finished.mutable_finished()->set_value(0.5);
  return script + Say(finished);
}

std::string Json(const nlohmann::json& value) { return value.dump(); }

v1::CreateStudyRequest PoolStudy(const std::string& folder) {
  v1::CreateStudyRequest request;
  request.set_study_json(Json({{"name", "trained"},
                               {"command", {"/bin/sh", "-c", ElasticReplica()}},
                               {"metric", {{"name", "loss"}, {"direction", "minimize"}}},
                               {"search_space", {{"x", {{"_type", "choice"}, {"_value", {7}}}}}},
                               {"sampler", "random"},
                               {"trials", 1},
                               {"slots", 1},
                               {"seed", 1}}));
  request.set_directory(folder);
  return request;
}

v1::CreateStudyRequest ClientsStudy() {
  v1::CreateStudyRequest request;
  request.set_study_json(Json({{"name", "asked"},
                               {"ask_and_tell", true},
                               {"metric", {{"name", "loss"}, {"direction", "minimize"}}},
                               {"search_space", {{"x", {{"_type", "choice"}, {"_value", {7}}}}}},
                               {"sampler", "random"},
                               {"seed", 1}}));
  request.set_directory("/");
  return request;
}

class Recorder {
 public:
  Recorder(std::string folder, const std::string& service)
      : folder_(std::move(folder)), service_(service), relay_(service) {}

  Recording Record() {
    AskAndTell();
    Train();
    return relay_.TakeRecording();
  }

 private:
  template <typename Response, typename Request>
  Response Call(const std::string& method, const Request& request) {
    relay_.Note("call " + method, request.SerializeAsString());
    const absl::StatusOr<std::string> answer =
        CallMethod(service_, method, request.SerializeAsString());
    if (!answer.ok()) {
      std::fprintf(stderr, "%s: %s\n", method.c_str(), answer.status().ToString().c_str());
      std::exit(1);
    }
    relay_.Note("answer " + method, *answer);
    Response response;
    response.ParseFromString(*answer);
    return response;
  }

  // Every method that needs no agent. Trials 1 to 3, of study 1.
  void AskAndTell() {
    Call<v1::Study>("CreateStudy", ClientsStudy());
    v1::EnqueueRequest enqueue;
    enqueue.set_study("asked");
    enqueue.set_parameters(R"({"x":7})");
    Call<v1::TrialRecord>("Enqueue", enqueue);
    v1::AskRequest ask;
    ask.set_study("asked");
    ask.set_request_key("once");
    const std::int64_t trial = Call<v1::TrialRecord>("Ask", ask).trial_id();
    v1::ReportRequest report;
    report.set_trial_id(trial);
    report.set_step(1);
    report.set_value(0.75);
    Call<v1::Verdict>("Report", report);
    v1::TrialId id;
    id.set_trial_id(trial);
    Call<v1::Verdict>("ShouldPrune", id);
    v1::SetAttributesRequest attributes;
    attributes.set_trial_id(trial);
    (*attributes.mutable_user())["who"] = R"("me")";
    Call<v1::TrialRecord>("SetAttributes", attributes);
    v1::TellRequest tell;
    tell.set_trial_id(trial);
    tell.set_value(0.5);
    tell.set_state(v1::TRIAL_COMPLETE);
    Call<v1::TellResponse>("Tell", tell);
    Call<v1::TrialRecord>("GetTrial", id);
    v1::StudyName name;
    name.set_name("asked");
    Call<v1::TrialRecord>("GetBestTrial", name);
    Call<v1::Study>("StopStudy", name);
    v1::ResumeStudyRequest resume;
    resume.set_name("asked");
    Call<v1::Study>("ResumeStudy", resume);
    Call<v1::ListStudiesResponse>("ListStudies", v1::ListStudiesRequest());
  }

  // A trial of the pool from its start to its end.
  void Train() {
    AgentOptions options;
    options.service_address = relay_.address();
    options.node_name = "oak";
    options.slots = 1;
    options.directory = folder_ + "/agent";
    const auto agent = Agent::Start(options);
    if (!agent.ok() || !(*agent)->WaitConnected(60)) std::exit(1);
    v1::DrainNodeRequest drain;
    drain.set_name("oak");
    Call<v1::Node>("DrainNode", drain);
    drain.set_undo(true);
    Call<v1::Node>("DrainNode", drain);
    Call<v1::Study>("CreateStudy", PoolStudy(folder_));
    std::int64_t trial = 0;
    AwaitEvent([&](const v1::AgentMessage& event) {
      if (!event.from_replica().message().has_checkpoint()) return false;
      trial = event.from_replica().trial_id();
      return true;
    });
    v1::TrialOutputRequest output;
    output.set_trial_id(trial);
    Call<v1::TrialOutput>("GetTrialOutput", output);
    Call<v1::Pool>("GetPool", v1::GetPoolRequest());
    v1::PinTrialRequest pin;
    pin.set_study("trained");
    pin.set_slots(1);
    Call<v1::Trial>("PinTrial", pin);
    std::ofstream(folder_ + "/seen") << "\n";
    AwaitEvent([](const v1::AgentMessage& event) { return event.has_exited(); });
    AwaitAcknowledged();
    v1::GetStudyRequest get;
    get.set_name("trained");
    Call<v1::StudyDetails>("GetStudy", get);
    v1::CancelTrialRequest cancel;
    cancel.set_trial_id(trial);  // which has ended, and stays as it is
    Call<v1::TrialRecord>("CancelTrial", cancel);
    v1::StudyName name;
    name.set_name("trained");
    Call<v1::Study>("DeleteStudy", name);
    (*agent)->LeaveWithin(60);
    AwaitEvent([](const v1::AgentMessage& event) { return event.has_leaving(); });
    AwaitAcknowledged();
    (*agent)->Stop(0);
  }

  template <typename Condition>
  void AwaitEvent(Condition condition) {
    relay_.Await([&](const Recording& recording) {
      for (const Said& said : recording) {
        v1::AgentMessage event;
        if (said.by == "agent" && event.ParseFromString(said.bytes) && condition(event))
          return true;
      }
      return false;
    });
  }

  void AwaitAcknowledged() {
    relay_.Await([](const Recording& recording) {
      std::int64_t last = 0;
      std::int64_t acknowledged = 0;
      for (const Said& said : recording) {
        v1::AgentMessage event;
        v1::ServiceMessage answer;
        if (said.by == "agent" && event.ParseFromString(said.bytes) && event.sequence() > 0) {
          last = event.sequence();
        } else if (said.by == "service" && answer.ParseFromString(said.bytes) &&
                   answer.has_acknowledge()) {
          acknowledged = answer.acknowledge().sequence();
        }
      }
      return acknowledged >= last;
    });
  }

  const std::string folder_;
  const std::string service_;
  Relay relay_;
};

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: record_protocol FILE\n", stderr);
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "record-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  ServiceOptions options;
  options.grpc_address = "127.0.0.1:0";
  const auto service = Service::Start(options);
  if (!service.ok()) {
    std::fprintf(stderr, "%s\n", service.status().ToString().c_str());
    return 1;
  }
  const Recording recording = Recorder(folder, (*service)->grpc_address()).Record();
  (*service)->Shutdown();
  std::filesystem::remove_all(folder);
  const absl::Status written = WriteRecording(argv[1], recording);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.ToString().c_str());
  std::printf("%zu messages in %s\n", recording.size(), argv[1]);
  return written.ok() ? 0 : 1;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::Main(argc, argv); }
