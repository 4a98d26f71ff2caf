#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "handover.pb.h"
#include "tuner.pb.h"

namespace espalier {

// Events an agent keeps for an absent service before it stops reading from its replicas.
inline constexpr std::size_t kMaxWaitingEvents = 65536;
inline constexpr std::size_t kMaxWaitingBytes = std::size_t{64} << 20;

// The agent's events, numbered in the order they happened and kept until the service has
// acknowledged them. A replica's Progress takes the place of an older one that was never sent, with
// the older one's profile added, so what a long absence leaves behind is reports and exits. One
// that was sent once is left alone: the service may have counted it. Pure; not thread-safe.
class Outbox {
 public:
  // Numbers the event and appends it. Never refuses: see full().
  void Add(v1::AgentMessage event);

  // The next event to send on this stream; nullptr: all are sent. MarkSent goes on to the next.
  const v1::AgentMessage* NextToSend() const;
  void MarkSent();
  // A new stream was opened: everything that is not acknowledged is sent again, in order.
  void SendAllAgain() { next_ = 0; }

  // Drops the events up to `sequence`; returns the replicas whose exit was among them.
  std::vector<std::int64_t> Acknowledge(std::int64_t sequence);

  // Whether it is time to stop reading from replicas until the service has caught up.
  bool full() const { return events_.size() >= kMaxWaitingEvents || bytes_ >= kMaxWaitingBytes; }
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }

  // Hands the events over to the next agent in this process, which takes them over before it adds
  // any.
  void HandOver(v1::AgentHandover& handover) const;
  void TakeOver(const v1::AgentHandover& handover);

 private:
  struct Event {
    v1::AgentMessage message;
    std::size_t bytes = 0;
    bool ever_sent = false;
  };

  void TakeOverOlderProgress(v1::FromReplica& newer);

  std::deque<Event> events_;  // by sequence; those sent once come first
  std::size_t next_ = 0;
  std::size_t bytes_ = 0;
  std::int64_t last_sequence_ = 0;
};

}  // namespace espalier
