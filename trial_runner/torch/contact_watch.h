#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// Tells the service which members of its group this replica cannot reach. Once the replica has
// waited for the others for kStuckAfter_s, in a formation or a collective, a thread of the watch
// tries each one's address, and does so again every so often. While all of them answer nothing is
// said: some member is slow, which it may be.
class ContactWatch {
 public:
  static constexpr double kStuckAfter_s = 5;
  static constexpr double kAttempt_s = 2;

  // Both must outlive the watch.
  ContactWatch(ControlPlane& control, const Collectives& collectives);
  ~ContactWatch();
  ContactWatch(const ContactWatch&) = delete;
  ContactWatch& operator=(const ContactWatch&) = delete;

  // The members that are waited for from now on; none where the group has no members.
  void Follow(const Membership& group, ReplicaId self);

  // Tries all the others now.
  std::vector<ReplicaContact> Try() const;

 private:
  void Run();

  ControlPlane& control_;
  const Collectives& collectives_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  Membership group_;
  ReplicaId self_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace espalier
