#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/http2_frame.h"
#include "base/status.h"
#include "tuner/door/call_head.h"

namespace espalier {

inline constexpr std::size_t kMaxHeaderBlock = 16
                                               << 10;  // bytes, packed as it is; gRPC takes 8 KiB
inline constexpr std::size_t kMaxFirstBytes = 32
                                              << 10;  // until the head of the first call is whole
inline constexpr std::size_t kMaxAdmittedBytes = 128 << 10;  // then, until our SETTINGS are known

// Follows what a client says on a new connection of HTTP/2 (RFC 9113), from its preface to the head
// of its first call. The service's side begins with empty SETTINGS, which have to be sent once the
// preface is there: clients of gRPC make no call before. That they are acknowledged is kept from
// whom the connection is handed to, which sends SETTINGS of its own and waits for one
// acknowledgement only. Costs what has come, in memory, and no more than a look at each frame.
class FirstCall {
 public:
  // Takes what has come. INVALID_ARGUMENT, RESOURCE_EXHAUSTED: what is wrong; the connection is
  // good for nothing then.
  absl::Status Take(std::string_view in);

  bool greeted() const { return said_.size() >= http2::kPreface.size(); }
  bool whole() const { return whole_; }                // there is a head
  bool acknowledged() const { return acknowledged_; }  // as are our SETTINGS
  const CallHead& head() const { return head_; }
  std::uint32_t stream() const { return stream_; }
  std::size_t bytes() const { return said_.capacity() + block_.capacity(); }

  // All that has come, without that acknowledgement.
  std::string TakeSaid() { return std::move(said_); }

 private:
  absl::Status TakeFrame(const http2::FrameHead& frame, std::string_view payload);
  absl::Status TakeHeaders(const http2::FrameHead& frame, std::string_view payload);

  std::string said_;
  std::size_t at_ = 0;  // where the next frame begins
  bool settings_ = false;
  bool acknowledged_ = false;
  bool in_block_ = false;
  bool whole_ = false;
  std::string block_;  // of headers
  CallHead head_;
  std::uint32_t stream_ = 0;
};

// Counts the bytes of each header block that passes: gRPC 1.51 counts them when a text has come as
// a whole, and copies what there is of it for each frame (CVE-2023-33953).
class HeaderBlocks {
 public:
  // False: a block is larger than kMaxHeaderBlock.
  bool Pass(std::string_view in);

 private:
  std::size_t preface_left_ = http2::kPreface.size();
  std::string head_;  // of a frame, as far as it has come
  std::size_t payload_left_ = 0;
  std::size_t block_ = 0;
};

}  // namespace espalier
