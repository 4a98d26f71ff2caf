#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tuner/base/status.h"
#include "tuner/server/kubernetes_api.h"

namespace espalier {

// By which one of several processes leads: a Lease of Kubernetes. The API server takes a change of
// it only from who has seen it as it is, so that of two that take it one does.
//
// Another's may be taken when it has not been renewed for as long as it says; by our own clock,
// from when we saw it first, so that nobody's clock has to be right. While the API server does not
// answer nobody can take it: who has it goes on.
class KubernetesLease {
 public:
  struct Options {
    std::string name;
    std::string holder;  // who we are: nobody else says so
    double duration_s = 15;
  };

  KubernetesLease(ApiServer server, Options options);
  // Gives it back, if it is ours.
  ~KubernetesLease();

  // Takes it if it can be taken now. False: it is another's, whose name is in holder().
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
  // Of whoever calls, then of the thread.
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
