#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "tuner/server/engines/kubernetes_api.h"

namespace espalier {

// A Lease of Kubernetes, by which one of several processes leads. The API server accepts a change
// of it only from a process that has seen its present version, so that only one of two that try to
// take it succeeds.
//
// Another process's Lease may be taken when it has not been renewed for its duration, measured by
// our own clock from when we first saw that version, so that clocks need not agree. Its holder
// gives it up after two thirds of that, measured from when the last renewal that succeeded was
// begun, whatever the reason: it may have been cut off from an API server that others reach.
class KubernetesLease {
 public:
  struct Options {
    std::string name;
    std::string holder;  // our identity, which must be unique
    double duration_s = 15;
    // Of a clock that never jumps; none: the time since the machine was started. Any thread.
    std::function<double()> clock_s{};
  };

  KubernetesLease(ApiServer server, Options options);
  // Gives it back, if it is ours.
  ~KubernetesLease();

  // Takes it if it can be taken now. False: another process has it, named by holder().
  absl::StatusOr<bool> Take();
  const std::string& holder() const { return holder_; }

  // Renews it from now on, on a thread. `lost` is called with WhyLost() on another one, once, as
  // soon as there is a reason: also while a call of the API server is on its way.
  void Keep(std::function<void(const std::string& why)> lost);

  // Renews it once; what Keep does in between is not to be done beside it.
  absl::Status Renew();
  // Why it must be taken for lost; empty: it is ours. Any thread, after Take.
  std::string WhyLost() const;

 private:
  struct Seen;

  absl::StatusOr<Seen> Look();
  absl::Status Write(const Seen& seen, const std::string& holder);
  void RenewAgainAndAgain();
  void GiveBack();
  void Guard(const std::function<void(const std::string& why)>& lost);

  const Options options_;
  // Used by the caller, then by the thread that renews.
  KubernetesApi api_;
  std::string holder_;
  std::string version_seen_;  // of the lease, when it was another's
  double seen_at_s_ = 0;      // since when it is as it was

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool ours_ = false;
  double renewed_at_s_ = 0;  // when the last renewal that succeeded was begun
  std::string trouble_;      // of the last one, if that has failed since
  std::string taken_by_;     // another, which has it
  bool stopping_ = false;
  std::thread renewing_;
  std::thread guarding_;
};

}  // namespace espalier
