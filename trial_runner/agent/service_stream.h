#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "trial_runner/agent/service_call.h"
#include "tuner.pb.h"

namespace espalier {

// Messages waiting in either direction; beyond it the sender is asked to wait.
inline constexpr std::size_t kMaxStreamQueue = 256;

// A connection on which the service has not said a word for so long is taken to be cut; the next
// one for twice as long, since a service with much to do may need it.
inline constexpr std::chrono::milliseconds kFirstWordWait{30'000};
inline constexpr std::chrono::milliseconds kFirstWordWaitMost{600'000};

// The agent's stream to the service, redialled for ever (after 50 ms at first, 2 s at most).
// Threads of its own do the blocking calls; the owner learns of arrivals by an eventfd and never
// blocks. Methods may be called from any thread.
class ServiceStream {
 public:
  enum class ArrivalKind { kOpened, kMessage, kBroken };
  struct Arrival {
    ArrivalKind kind = ArrivalKind::kMessage;
    std::int64_t stream = 0;  // counts the streams opened
    v1::ServiceMessage message;
    absl::Status status;  // of a broken stream
    std::string peer;     // the service's end, as gRPC writes it; with messages
  };

  // Adds to `wake_fd` (an eventfd, which must outlive this) when something arrived or a full queue
  // has room.
  ServiceStream(ServiceDialer dial, int wake_fd,
                std::chrono::milliseconds first_word_wait = kFirstWordWait);
  ~ServiceStream();

  std::vector<Arrival> TakeArrivals();
  // Queues a message for that stream. False: it is not open any more or its queue is full; nothing
  // was queued.
  bool Send(std::int64_t stream, const v1::AgentMessage& message);
  // Gives the present stream up and dials again.
  void Break();

 private:
  void DialForEver();
  // One stream from its start to its end; true if the service said something on it.
  bool RunOnce();
  // From the moment that the call is known to others until it is over, and how it ended.
  absl::Status TalkOn(ServiceCall& call, std::int64_t stream);
  void Hear(ServiceCall& call, std::int64_t stream);
  void Write(ServiceCall& call);
  // Cancels a call on which nothing is said in time. True: it has.
  bool CutUnlessAnswered(ServiceCall& call);
  void PostBroken(std::int64_t stream, const absl::Status& status);
  void Post(Arrival arrival);
  void Wake() const;

  const ServiceDialer dial_;
  const int wake_fd_;
  const std::chrono::milliseconds first_word_wait_;
  std::chrono::milliseconds next_first_word_wait_;  // used by the dialling thread, and for it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrival> arrivals_;
  std::deque<v1::AgentMessage> outgoing_;
  std::int64_t stream_ = 0;
  bool open_ = false;      // outgoing_ takes messages
  bool answered_ = false;  // on the present stream
  bool closing_ = false;
  ServiceCall* call_ = nullptr;  // of the present stream
  std::thread dialler_;          // last: it uses all of the above
};

}  // namespace espalier
