#include "trial_runner/torch/group/contact_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "trial_runner/collectives/rendezvous/contacts.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

bool Closed(const ReplicaContact& contact) {
  return contact.contact == Contact::kRefused || contact.contact == Contact::kSilent;
}

}  // namespace

ContactWatch::ContactWatch(ControlPlane& control, const Collectives& collectives, GiveUp give_up)
    : control_(control),
      collectives_(collectives),
      give_up_(std::move(give_up)),
      thread_([this] { Run(); }) {}

ContactWatch::~ContactWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  places_.Cancel();
  ended_.notify_all();
  thread_.join();
}

void ContactWatch::Follow(const Membership& group, ReplicaId self) {
  const std::lock_guard lock(mutex_);
  group_ = group;
  self_ = self;
  place_ = {};
  hopeless_.clear();
}

void ContactWatch::At(const ProgramPlace& place) {
  const std::lock_guard lock(mutex_);
  place_ = place;
}

std::vector<ReplicaContact> ContactWatch::Try() const {
  std::vector<ReplicaContact> contacts;
  std::vector<std::string> addresses;
  {
    const std::lock_guard lock(mutex_);
    for (const Member& member : group_.members) {
      if (member.replica == self_) continue;
      contacts.push_back({member.replica, member.address});
      addresses.push_back(member.address);
    }
  }
  const std::vector<ContactAttempt> attempts = TryContacts(addresses, kAttempt_s);
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    contacts[i].contact = attempts[i].contact;
    contacts[i].error = attempts[i].error;
  }
  return contacts;
}

// Without the lock.
void ContactWatch::ComparePlaces(const Membership& group, int rank, std::int64_t wait,
                                 const ProgramPlace& place) {
  const auto found = places_.Look(group, rank, wait, place);
  const bool hopeless = found && found->hopeless;
  if (found && !hopeless) std::fprintf(stderr, "espalier: %s\n", found->text.c_str());
  {
    const std::lock_guard lock(mutex_);
    hopeless_ = hopeless && group_.generation == group.generation ? found->text : "";
  }
  if (hopeless && found->certain) give_up_(group.generation);
}

std::string ContactWatch::Hopeless() const {
  const std::lock_guard lock(mutex_);
  return hopeless_;
}

void ContactWatch::Run() {
  double tried_at_s = 0;   // of the wait that goes on
  double waited_s = 0;     // when it was looked at last
  std::int64_t waits = 0;  // so far
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kLookEvery, [this] { return ending_; })) {
    const double waiting_s = collectives_.Waiting_s();
    if (waiting_s < tried_at_s) tried_at_s = 0;  // another wait
    if (waiting_s < waited_s) ++waits;
    waited_s = waiting_s;
    const std::optional<int> rank = group_.RankOf(self_);
    if (rank && waiting_s < kStuckAfter_s) {
      places_.End(*rank);
      hopeless_.clear();
    } else if (rank && group_.members.size() > 1 && place_.kind != ProgramPlace::Kind::kNone) {
      const Membership group = group_;
      const ProgramPlace place = place_;
      lock.unlock();
      ComparePlaces(group, *rank, waits, place);
      lock.lock();
      if (ending_) return;
    }
    if (waiting_s < tried_at_s + kStuckAfter_s || group_.members.size() < 2) continue;
    const std::int64_t generation = group_.generation;
    lock.unlock();
    const ReplicaStuck stuck{generation, waiting_s, Try()};
    const bool cut = std::any_of(stuck.contacts.begin(), stuck.contacts.end(), Closed);
    // What was waited for may have come while it tried.
    if (cut && collectives_.Waiting_s() > waiting_s) control_.Send(stuck);
    lock.lock();
    tried_at_s = waiting_s;
  }
}

}  // namespace espalier
