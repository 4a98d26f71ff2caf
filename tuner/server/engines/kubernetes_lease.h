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
// our own clock from when we first saw that version, so that clocks need not agree. While the API
// server does not answer, no process can take it, and its holder goes on.
class KubernetesLease {
 public:
  struct Options {
    std::string name;
    std::string holder;  // our identity, which must be unique
    double duration_s = 15;
  };

  KubernetesLease(ApiServer server, Options options);
  // Gives it back, if it is ours.
  ~KubernetesLease();

  // Takes it if it can be taken now. False: another process has it, named by holder().
  absl::StatusOr<bool> Take();
  const std::string& holder() const { return holder_; }

  // Renews it from now on, on a thread. `lost` is called on that, once, when another has it.
  void Keep(std::function<void(const std::string& holder)> lost);

 private:
  struct Seen;

  absl::StatusOr<Seen> Look();
  absl::Status Write(const Seen& seen, const std::string& holder);
  void Run(const std::function<void(const std::string& holder)>& lost);
  absl::Status Renew();

  const Options options_;
  // Used by the caller, then by the thread.
  KubernetesApi api_;
  std::string holder_;
  std::string version_seen_;  // of the lease, when it was another's
  double seen_at_s_ = 0;      // since when it is as it was
  bool ours_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace espalier
