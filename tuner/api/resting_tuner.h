#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier {

// A state at rest, without a service: the operations that only look at the core work on it, and it
// takes no events. One owner.
class RestingTuner : public Tuner {
 public:
  // `now`: where its clock stands. `shows_secrets` as in View.
  RestingTuner(TunerState state, Time now, bool shows_secrets = true)
      : now_(now), shows_secrets_(shows_secrets), core_(std::move(state), CoreOptions()) {}

  const TunerState& state() const { return core_.state(); }
  Time now() const { return now_; }

  Reply Post(Event /*event*/) override {
    Reply reply;
    reply.status = absl::UnimplementedError("a record that is only read takes no events");
    return reply;
  }
  absl::Status Read(const std::function<void(const View&)>& look) override {
    View view{.core = core_,
              .now = now_,
              .pids = pids_,
              .gpus = gpus_,
              .folders = folders_,
              .hosts = hosts_};
    view.shows_secrets = shows_secrets_;
    look(view);
    return absl::OkStatus();
  }

 private:
  Time now_;
  bool shows_secrets_;
  Core core_;
  std::map<ReplicaId, int> pids_;
  std::map<std::string, std::vector<NodeGpu>> gpus_;
  std::map<std::string, std::string> folders_;
  std::map<std::string, std::string> hosts_;
};

}  // namespace espalier
