#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espalier::http2 {

// What a client says first (RFC 9113, 3.4).
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr std::size_t kHeadBytes = 9;
inline constexpr std::size_t kMaxPayload = 16384;  // while nobody has agreed on more

// Types and flags of frames (6).
inline constexpr std::uint8_t kData = 0;
inline constexpr std::uint8_t kHeaders = 1;
inline constexpr std::uint8_t kReset = 3;
inline constexpr std::uint8_t kSettings = 4;
inline constexpr std::uint8_t kGoAway = 7;
inline constexpr std::uint8_t kContinuation = 9;
inline constexpr std::uint8_t kAcknowledges = 1;  // of SETTINGS
inline constexpr std::uint8_t kEndStream = 1;
inline constexpr std::uint8_t kEndHeaders = 4;
inline constexpr std::uint8_t kPadded = 8;
inline constexpr std::uint8_t kPriority = 0x20;

struct FrameHead {
  std::size_t payload = 0;  // bytes that follow
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

inline std::uint32_t ReadNumber(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<std::uint8_t>(byte);
  return number;
}

// Of kHeadBytes bytes.
inline FrameHead ReadFrameHead(std::string_view bytes) {
  return {.payload = ReadNumber(bytes.substr(0, 3)),
          .type = static_cast<std::uint8_t>(bytes[3]),
          .flags = static_cast<std::uint8_t>(bytes[4]),
          .stream = ReadNumber(bytes.substr(5, 4)) & 0x7fffffffU};
}

inline std::string Number(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

inline std::string Bytes(const FrameHead& head) {
  std::string bytes = Number(static_cast<std::uint32_t>(head.payload)).substr(1);
  bytes.push_back(static_cast<char>(head.type));
  bytes.push_back(static_cast<char>(head.flags));
  return bytes.append(Number(head.stream));
}

inline std::string Frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload) {
  return Bytes({.payload = payload.size(), .type = type, .flags = flags, .stream = stream})
      .append(payload);
}

}  // namespace espalier::http2
