#pragma once

#include <cstddef>
#include <memory>

#include "tuner/server/http/http_route.h"
#include "tuner/web/feed/revision_log.h"

namespace espalier {

// How many pages follow the service, and how often each thing is done for them.
struct EventStreamLimits {
  std::size_t most = 128;       // streams at a time
  int gather_ms = 20;           // from the first news to their being told
  int news_ms = 250;            // between two tellings
  int live_ms = 1000;           // between two looks at the trials that run
  int alive_ms = 15000;         // between two signs of life
  int rights_ms = 4000;         // between two looks whether the client may still see all this
  int silent_ms = 30000;        // then a client that takes nothing is dropped
  int send_buffer = 128 << 10;  // bytes of each socket in the kernel
};
inline constexpr std::size_t kMaxTrialsInEvent = 512;
inline constexpr std::size_t kMaxValuesInEvent = 2000;
inline constexpr int kRetryEvents_s = 10;  // after one stream too many

// GET /api/view/events: what changes in the service, as Server-Sent Events. One thread sends all of
// them. A stream is a cursor of the revision log, and nothing is queued for it: what is new is
// taken from the log when the client's socket has taken what went before. So a client that does not
// read costs its cursor and one telling of news, and keeps no other waiting.
//
// Log and tuner outlive it. All methods may be called from any thread.
class EventStreams {
 public:
  EventStreams(RevisionLog& log, Tuner& tuner, const EventStreamLimits& limits = {});
  ~EventStreams();  // stops
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  // The answer to a call. UNAVAILABLE: there are as many streams as there may be.
  HttpAnswer Open(const HttpCall& call);

  std::size_t open() const;
  const RevisionLog& log() const;

  // Closes all streams. From now on none is opened.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier
