#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

// The control socket's framing: the length of the message in four bytes, little end first, then
// the message. Pure.
inline constexpr std::size_t kFrameHeaderBytes = 4;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;

std::string Frame(std::string_view message);

// Cuts what arrives into messages. After an error nothing more can be read: where the next frame
// begins is not known.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message; nullopt: it has not arrived yet. Fails on a frame over kMaxFrameBytes.
  absl::StatusOr<std::optional<std::string>> Next();
  // Bytes of a frame that has not arrived in full.
  std::size_t pending() const { return buffer_.size() - begin_; }
  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }

 private:
  std::string buffer_;
  std::size_t begin_ = 0;
};

}  // namespace espalier
