#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "base/clock.h"
#include "tuner.pb.h"

namespace espalier {

inline constexpr std::size_t kMaxOutgoing = 16384;  // messages that wait for one agent
// Events of one agent that are queued and not durable yet; its stream is read while there are
// fewer.
inline constexpr int kMaxUnsettled = 64;

// What a session asks of its stream. None of these waits. The session calls `end` once, when all
// its other calls have returned, and none of them afterwards.
struct AgentStreamCalls {
  // Begins to send the message, which stays as it is until the stream calls Written.
  std::function<void(const v1::ServiceMessage*)> write;
  std::function<void()> cancel;     // breaks the stream; the reader then finds it ended
  std::function<void()> read_next;  // after Take has said that reading has to pause
  std::function<void()> end;        // closed, and nothing is being written any more
};

// One agent's stream as the service sees it, without a thread: a bounded queue of messages of
// which one at a time is being written, when the agent was last heard, and how many of its events
// are under way. Nothing waits: an agent too slow to take its messages is cut off, and its next
// Hello puts things right; one that says more than the service can take is not read for a while,
// and is not silent meanwhile. May be used from any thread.
class AgentSession {
 public:
  AgentSession(AgentStreamCalls calls, Time now);

  void Send(v1::ServiceMessage message);
  // Acknowledgements are cumulative, so only the newest waits to be sent.
  void Acknowledge(std::int64_t sequence);
  // The stream has written the message that it was given; not ok: it is broken.
  void Written(bool ok);
  // Breaks the stream.
  void Cancel();
  // Nothing new is written afterwards; `end` is called, now or when a write under way is done.
  void Close();

  void Heard(Time now);
  // An event of the agent goes into the service's queue; Settled when it is durable, refused or
  // forgotten. False: the stream is not to be read on until `read_next`.
  bool TakeEvent();
  // Its Hello goes there too; nothing is read after it until it is settled.
  void TakeHello();
  void Settled(Time now);

  // Whether nothing was heard for `lease_s` although the service was listening.
  bool Silent(Time now, double lease_s) const;
  bool cancelled() const;

 private:
  void WriteNext(std::unique_lock<std::mutex>& lock);
  void CallDone(std::unique_lock<std::mutex>& lock);

  const AgentStreamCalls calls_;
  mutable std::mutex mutex_;
  std::deque<v1::ServiceMessage> queue_;
  v1::ServiceMessage current_;    // while writing_
  std::int64_t acknowledge_ = 0;  // 0: none waits
  int unsettled_ = 0;
  Time last_heard_;
  int calls_under_way_ = 0;  // of cancel and write, until Written
  bool writing_ = false;
  bool paused_ = false;  // not read until an event has settled
  bool cancelled_ = false;
  bool closed_ = false;
};

}  // namespace espalier
