#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tuner.pb.h"
#include "tuner/base/clock.h"

namespace espalier {

inline constexpr std::size_t kMaxOutgoing = 16384;  // messages that wait for one agent

// The outgoing half of one agent's stream: a bounded queue and the thread that writes it. Sending
// never waits: an agent too slow to take its messages is cut off, and its next Hello puts things
// right. May be used from any thread.
class AgentSession {
 public:
  // `write` sends one message, false if the stream is broken; `cancel` breaks the stream. Both
  // must work until Close has returned.
  AgentSession(std::function<bool(const v1::ServiceMessage&)> write, std::function<void()> cancel,
               Time now);
  ~AgentSession();

  void Send(v1::ServiceMessage message);
  // Acknowledgements are cumulative, so only the newest waits to be sent.
  void Acknowledge(std::int64_t sequence);
  // Breaks the stream; the reader then finds it ended.
  void Cancel();
  // Ends the writer. Nothing is written afterwards.
  void Close();

  void Heard(Time now);
  Time last_heard() const;
  bool cancelled() const;

 private:
  void Write();

  const std::function<bool(const v1::ServiceMessage&)> write_;
  const std::function<void()> cancel_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::ServiceMessage> queue_;
  std::int64_t acknowledge_ = 0;  // 0: none waits
  Time last_heard_;
  bool cancelled_ = false;
  bool closed_ = false;
  std::thread writer_;
};

}  // namespace espalier
