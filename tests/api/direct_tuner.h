#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier {

// A real core without queue, thread and storage: every event is stepped where it is posted, and
// time stands where the test has put it.
class DirectTuner final : public Tuner {
 public:
  explicit DirectTuner(Time start = TimeFromSeconds(1000), const CoreOptions& options = {})
      : now(start), core(TunerState{}, options) {}

  Reply Post(Event event) override {
    Reply reply;
    PostThen(std::move(event), [&reply](const Reply& answer) { reply = answer; });
    return reply;
  }

  // What waits is answered by a later event.
  void PostThen(Event event, std::function<void(const Reply&)> done) override {
    StepResult result = core.Step(now, event);
    commands.insert(commands.end(), result.commands.begin(), result.commands.end());
    if (result.reply.later()) {
      waits[result.reply.wait()].push_back(std::move(done));
    } else {
      done(result.reply);
    }
    for (const auto& [wait, reply] : result.late) {
      const auto waiting = waits.extract(wait);
      if (waiting.empty()) continue;
      for (const auto& answer : waiting.mapped()) answer(reply);
    }
  }

  absl::Status Read(const std::function<void(const View&)>& look) override {
    look(view());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadOutput(NodeId node, const TrialName& trial,
                                         const OutputPart& part) override {
    const auto text = output.find(node);
    if (text == output.end()) return Tuner::ReadOutput(node, trial, part);
    const std::string rank = part.rank == 0 ? "" : ", rank " + std::to_string(part.rank);
    return trial.study + "/" + std::to_string(trial.number) + rank + ": " + text->second;
  }

  absl::StatusOr<std::string> CheckSampler(const StudySpec& spec) override {
    return check_sampler ? check_sampler(spec) : Tuner::CheckSampler(spec);
  }

  View view() const {
    return {.core = core,
            .now = now,
            .pids = pids,
            .gpus = gpus,
            .folders = folders,
            .hosts = hosts,
            .users_add_machines = users_add_machines};
  }

  std::function<absl::StatusOr<std::string>(const StudySpec&)> check_sampler;
  bool users_add_machines = true;
  Time now;
  Core core;
  std::map<ReplicaId, int> pids;
  std::map<std::string, std::vector<NodeGpu>> gpus;
  std::map<std::string, std::string> folders;
  std::map<std::string, std::string> hosts;
  std::map<NodeId, std::string> output;  // of every trial, on the nodes that answer
  std::vector<Command> commands;
  std::map<LaterReply, std::vector<std::function<void(const Reply&)>>> waits;
};

inline constexpr char kStudyJson[] = R"({
  "name": "mnist",
  "command": ["/bin/true", "--fast"],
  "metric": {"name": "loss", "direction": "minimize"},
  "search_space": {"lr": {"_type": "uniform", "_value": [0.1, 0.2]}},
  "sampler": {"name": "random"},
  "trials": 2
})";

inline v1::CreateStudyRequest CreateRequest(const std::string& json = kStudyJson) {
  v1::CreateStudyRequest request;
  request.set_study_json(json);
  request.set_directory("/tmp");
  return request;
}

}  // namespace espalier
