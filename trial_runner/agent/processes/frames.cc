#include "trial_runner/agent/processes/frames.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace espalier {

std::string Frame(std::string_view message) {
  std::string frame;
  frame.reserve(kFrameHeaderBytes + message.size());
  const auto length = static_cast<std::uint32_t>(message.size());
  for (int shift = 0; shift < 32; shift += 8) {
    frame.push_back(static_cast<char>((length >> shift) & 0xffU));
  }
  frame.append(message);
  return frame;
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (pending() < kFrameHeaderBytes) return std::nullopt;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kFrameHeaderBytes; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[begin_ + i]))
              << (8 * i);
  }
  if (length > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("message of ", length,
                                                     " bytes on the control socket: at most ",
                                                     kMaxFrameBytes, " are allowed"));
  }
  if (pending() < kFrameHeaderBytes + length) return std::nullopt;
  std::string message = buffer_.substr(begin_ + kFrameHeaderBytes, length);
  begin_ += kFrameHeaderBytes + length;
  // Moving the rest to the front only once half is read keeps the cost linear.
  if (begin_ * 2 >= buffer_.size()) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return message;
}

}  // namespace espalier
