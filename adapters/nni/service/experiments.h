#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "adapters/nni/service/event_feed.h"
#include "adapters/nni/service/trial_view.h"
#include "tuner/api/tuner.h"

namespace espalier::nni {

inline constexpr int kProtocol = 1;       // of docs/nni_protocol.md
inline constexpr double kMaxWait_s = 25;  // of a request for events

// NNI's experiments as the studies that they are: what each request of docs/nni_protocol.md does,
// and the body that it is answered with. Any thread may call; each call waits for the owner of the
// core, Events up to kMaxWait_s. Tuner and feed must outlive it.
class Experiments {
 public:
  Experiments(Tuner& tuner, EventFeed& feed) : tuner_(tuner), feed_(feed) {}

  absl::StatusOr<std::string> Describe();
  absl::StatusOr<std::string> Open(const std::string& experiment, std::string_view body);
  absl::StatusOr<std::string> Stop(const std::string& experiment);
  // `service_url`: where the front end has reached us.
  absl::StatusOr<std::string> Submit(const std::string& experiment, const std::string& trial,
                                     std::string_view body, const std::string& service_url);
  absl::StatusOr<std::string> SetParameter(const std::string& experiment, const std::string& trial,
                                           std::string_view body);
  absl::StatusOr<std::string> Cancel(const std::string& experiment, const std::string& trial,
                                     bool early_stopped);
  absl::StatusOr<std::string> Events(const std::string& experiment, std::string_view after,
                                     const std::string& wait_s);
  absl::StatusOr<std::string> File(const std::string& experiment, const std::string& trial,
                                   const std::string& name);

  // The trials' channel. `code` is HTTP's, where the status is OK.
  struct ChannelAnswer {
    absl::Status status;
    int code = 200;
    std::string body;
  };
  // Whether the secret is the trial's.
  absl::Status OpenChannel(const std::string& experiment, const std::string& trial,
                           std::string_view secret);
  ChannelAnswer ChannelPut(const std::string& experiment, const std::string& trial,
                           std::string_view secret, std::string_view body);
  ChannelAnswer ChannelGet(const std::string& experiment, const std::string& trial,
                           std::string_view secret);

 private:
  using LookAtStudy = std::function<void(const Study&, const View&)>;
  using LookAtTrial = std::function<void(const Trial&, const Study&, const View&)>;
  absl::Status ReadStudy(const std::string& experiment, const LookAtStudy& look);
  absl::Status ReadTrial(const std::string& experiment, const std::string& trial,
                         const LookAtTrial& look);
  // As ReadTrial, for callers with the trial's secret.
  absl::Status ReadByChannel(const std::string& experiment, const std::string& trial,
                             std::string_view secret, const LookAtTrial& look);
  absl::StatusOr<std::string> Show(const std::string& experiment, const std::string& trial);
  absl::Status TakeUp(const std::string& experiment);
  absl::Status SetAttribute(TrialId trial, const char* name, const std::string& json);

  Tuner& tuner_;
  EventFeed& feed_;
  std::mutex opening_;  // one at a time gives a study its key
};

}  // namespace espalier::nni
