#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/control_plane.h"
#include "trial_runner/torch/group/place_exchange.h"
#include "trial_runner/torch/group/program_place.h"

namespace espalier {

// Tells the service which members of its group this replica cannot reach. Once the replica has
// waited for the others for kStuckAfter_s, in a formation or a collective, a thread of the watch
// tries each one's address, and does so again every so often. While all of them answer it reports
// nothing: some member is slow, which is allowed. The waiting members also tell one another where
// in their programs they wait: this shows which member waits for which, and that none will go on if
// they wait at different places.
class ContactWatch {
 public:
  static constexpr double kStuckAfter_s = 5;
  static constexpr double kAttempt_s = 2;

  // Called by the watch's thread where the members of this generation will never go on.
  using GiveUp = std::function<void(std::int64_t generation)>;

  // Both must outlive the watch.
  ContactWatch(ControlPlane& control, const Collectives& collectives, GiveUp give_up);
  ~ContactWatch();
  ContactWatch(const ContactWatch&) = delete;
  ContactWatch& operator=(const ContactWatch&) = delete;

  // The members that are waited for from now on; none where the group has no members.
  void Follow(const Membership& group, ReplicaId self);

  // Where this replica waits when it waits next.
  void At(const ProgramPlace& place);

  // Why the group that is waited for will not go on, as far as its members have told; empty: it
  // may.
  std::string Hopeless() const;

  // Tries all the others now.
  std::vector<ReplicaContact> Try() const;

 private:
  void Run();
  void ComparePlaces(const Membership& group, int rank, std::int64_t wait,
                     const ProgramPlace& place);

  ControlPlane& control_;
  const Collectives& collectives_;
  const GiveUp give_up_;
  PlaceExchange places_;  // its thread's alone
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  Membership group_;
  ReplicaId self_;
  ProgramPlace place_;
  std::string hopeless_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace espalier
