#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace espalier {

// Does what others only begin, in order, on a thread of its own: gRPC encrypts and sends a message
// on the thread that hands it over, and a thousand acknowledgements in a batch would keep the owner
// of the core from its next one. Post may be called from any thread and never waits; what it is
// given must not wait either, and what it throws is logged.
class SendThread {
 public:
  SendThread();
  ~SendThread();  // does what is left

  // The callers bound what waits: one message a stream.
  void Post(std::function<void()> send);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace espalier
