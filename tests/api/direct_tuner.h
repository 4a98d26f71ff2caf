#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier {

// A real core without queue, thread and storage: every event is stepped where it is posted, and
// time stands where the test has put it.
class DirectTuner final : public Tuner {
 public:
  explicit DirectTuner(Time start = TimeFromSeconds(1000))
      : now(start), core(TunerState{}, CoreOptions{}) {}

  Reply Post(Event event) override {
    StepResult result = core.Step(now, event);
    commands.insert(commands.end(), result.commands.begin(), result.commands.end());
    return result.reply;
  }

  absl::Status Read(const std::function<void(const View&)>& look) override {
    look(view());
    return absl::OkStatus();
  }

  View view() const { return {core, now, pids, gpus}; }

  Time now;
  Core core;
  std::map<ReplicaId, int> pids;
  std::map<std::string, std::vector<NodeGpu>> gpus;
  std::vector<Command> commands;
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
