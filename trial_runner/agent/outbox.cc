#include "trial_runner/agent/outbox.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier {
namespace {

bool SameShape(const v1::ProfileEntry& a, const v1::ProfileEntry& b) {
  return a.nodes() == b.nodes() && a.replicas() == b.replicas() &&
         a.atomic_batch_size() == b.atomic_batch_size();
}

void AddTo(v1::ProfileEntry& sum, const v1::ProfileEntry& more) {
  sum.set_accumulation_count(sum.accumulation_count() + more.accumulation_count());
  sum.set_accumulation_time_s(sum.accumulation_time_s() + more.accumulation_time_s());
  sum.set_optimizer_count(sum.optimizer_count() + more.optimizer_count());
  sum.set_optimizer_time_s(sum.optimizer_time_s() + more.optimizer_time_s());
  sum.set_sync_time_s(sum.sync_time_s() + more.sync_time_s());
}

void AddProfile(v1::Progress& newer, const v1::Progress& older) {
  for (const v1::ProfileEntry& entry : older.profile()) {
    auto* profile = newer.mutable_profile();
    const auto same = std::find_if(profile->begin(), profile->end(),
                                   [&](const v1::ProfileEntry& e) { return SameShape(e, entry); });
    if (same != profile->end()) {
      AddTo(*same, entry);
    } else {
      *profile->Add() = entry;
    }
  }
}

}  // namespace

void Outbox::Add(v1::AgentMessage event) {
  if (event.has_from_replica() && event.from_replica().message().has_progress()) {
    TakeOverOlderProgress(*event.mutable_from_replica());
  }
  event.set_sequence(++last_sequence_);
  const std::size_t bytes = event.ByteSizeLong();
  bytes_ += bytes;
  events_.push_back({std::move(event), bytes, false});
}

void Outbox::TakeOverOlderProgress(v1::FromReplica& newer) {
  for (std::size_t i = events_.size(); i > 0 && !events_[i - 1].ever_sent; --i) {
    const Event& event = events_[i - 1];
    const v1::FromReplica& older = event.message.from_replica();
    if (older.replica_id() != newer.replica_id() || !older.message().has_progress()) continue;
    AddProfile(*newer.mutable_message()->mutable_progress(), older.message().progress());
    bytes_ -= event.bytes;
    events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    return;  // there is never more than one
  }
}

void Outbox::HandOver(v1::AgentHandover& handover) const {
  for (const Event& event : events_) {
    v1::HandedEvent& handed = *handover.add_events();
    *handed.mutable_message() = event.message;
    handed.set_ever_sent(event.ever_sent);
  }
  handover.set_last_sequence(last_sequence_);
}

void Outbox::TakeOver(const v1::AgentHandover& handover) {
  ESPALIER_CHECK(events_.empty(), "events are taken over before others happen");
  for (const v1::HandedEvent& handed : handover.events()) {
    const std::size_t bytes = handed.message().ByteSizeLong();
    bytes_ += bytes;
    events_.push_back({handed.message(), bytes, handed.ever_sent()});
  }
  last_sequence_ = handover.last_sequence();
}

const v1::AgentMessage* Outbox::NextToSend() const {
  return next_ < events_.size() ? &events_[next_].message : nullptr;
}

void Outbox::MarkSent() {
  ESPALIER_CHECK(next_ < events_.size(), "no event was left to send");
  events_[next_++].ever_sent = true;
}

std::vector<std::int64_t> Outbox::Acknowledge(std::int64_t sequence) {
  std::vector<std::int64_t> exited;
  // An event that was never sent cannot have been acknowledged, whatever the number says.
  while (!events_.empty() && events_.front().ever_sent &&
         events_.front().message.sequence() <= sequence) {
    const Event& event = events_.front();
    if (event.message.has_exited()) exited.push_back(event.message.exited().replica_id());
    bytes_ -= event.bytes;
    events_.pop_front();
    if (next_ > 0) --next_;
  }
  return exited;
}

}  // namespace espalier
