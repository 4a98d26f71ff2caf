#include "tuner/door/refusal.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/http2_frame.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxMessage = 4096;  // bytes; no message of ours is longer

// RFC 7541, 5.1, with a prefix of seven bits.
std::string Length(std::size_t length) {
  if (length < 127) return std::string(1, static_cast<char>(length));
  std::string bytes(1, static_cast<char>(127));
  for (length -= 127; length >= 128; length /= 128) {
    bytes.push_back(static_cast<char>(length % 128 + 128));
  }
  bytes.push_back(static_cast<char>(length));
  return bytes;
}

// A literal that no table takes up.
std::string LiteralField(std::string_view name, std::string_view value) {
  std::string bytes(1, '\0');
  bytes.append(Length(name.size())).append(name);
  return bytes.append(Length(value.size())).append(value);
}

// As gRPC wants messages: what is not printable ASCII, and the sign itself, as %XX.
std::string Escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char byte : text) {
    if (byte >= ' ' && byte <= '~' && byte != '%') {
      escaped.push_back(byte);
    } else {
      const auto value = static_cast<unsigned char>(byte);
      escaped.append({'%', kDigits[value >> 4], kDigits[value & 15]});
    }
  }
  return escaped;
}

}  // namespace

std::string SettingsFrame() { return http2::Frame(http2::kSettings, 0, 0, ""); }

std::string GoodbyeFrame(std::uint32_t last_stream) {
  return http2::Frame(http2::kGoAway, 0, 0, http2::Number(last_stream) + http2::Number(0));
}

std::string RefusalFrame(std::uint32_t stream, const absl::Status& status) {
  constexpr char kStatus200 = static_cast<char>(0x88);  // of the static table
  const std::string_view message(status.message().data(), status.message().size());
  const std::string block =
      std::string(1, kStatus200) + LiteralField("content-type", "application/grpc") +
      LiteralField("grpc-status", absl::StrCat(static_cast<int>(status.code()))) +
      LiteralField("grpc-message", Escaped(message.substr(0, kMaxMessage)));
  constexpr std::uint32_t kNoError = 0;  // it need not say what it has not said yet
  return http2::Frame(http2::kHeaders, http2::kEndStream | http2::kEndHeaders, stream, block) +
         http2::Frame(http2::kReset, 0, stream, http2::Number(kNoError));
}

}  // namespace espalier
