#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tuner/forwarding/added_token.h"

namespace espalier {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t kFrameHead = 9;
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::size_t kTypeAt = 3;
constexpr std::size_t kFlagsAt = 4;
constexpr std::size_t kStreamAt = 5;

// A length with a prefix of seven bits (RFC 7541, 5.1), of a text that is not Huffman coded.
std::string LengthPrefix(std::size_t length) {
  constexpr std::size_t kPrefix = 127;
  if (length < kPrefix) return std::string(1, static_cast<char>(length));
  std::string text(1, static_cast<char>(kPrefix));
  for (length -= kPrefix; length >= 128; length /= 128) {
    text.push_back(static_cast<char>(length % 128 + 128));
  }
  text.push_back(static_cast<char>(length));
  return text;
}

std::string NeverIndexed(const std::string& name, const std::string& value) {
  constexpr char kNewName = 0x10;
  return absl::StrCat(std::string(1, kNewName), LengthPrefix(name.size()), name,
                      LengthPrefix(value.size()), value);
}

class Http2Token final : public AddedToken {
 public:
  explicit Http2Token(const std::string& token)
      : field_(NeverIndexed("authorization", "Bearer " + token)) {}

  absl::Status Pass(std::string_view in, std::string& out) override {
    while (!in.empty()) {
      if (preface_left_ > 0) {
        const std::size_t n = std::min(preface_left_, in.size());
        if (in.substr(0, n) != kPreface.substr(kPreface.size() - preface_left_, n)) {
          return absl::InvalidArgumentError("neither HTTP/1.1 nor HTTP/2 is spoken here");
        }
        preface_left_ -= n;
        Move(in, n, out);
      } else if (payload_left_ > 0) {
        const std::size_t n = std::min(payload_left_, in.size());
        payload_left_ -= n;
        Move(in, n, out);
        if (payload_left_ == 0) EndFrame(out);
      } else {
        Move(in, std::min(kFrameHead - head_.size(), in.size()), head_);
        if (head_.size() == kFrameHead) BeginFrame(out);
      }
    }
    return absl::OkStatus();
  }

 private:
  static void Move(std::string_view& from, std::size_t n, std::string& to) {
    to.append(from.substr(0, n));
    from.remove_prefix(n);
  }

  std::uint8_t Byte(std::size_t at) const { return static_cast<std::uint8_t>(head_[at]); }

  void BeginFrame(std::string& out) {
    payload_left_ =
        static_cast<std::size_t>(Byte(0)) << 16 | static_cast<std::size_t>(Byte(1)) << 8 | Byte(2);
    std::uint32_t stream = Byte(kStreamAt) & 0x7fU;
    for (std::size_t i = 1; i < 4; ++i) stream = stream << 8 | Byte(kStreamAt + i);
    // Streams of a client have growing numbers; headers of one that there was are its trailers.
    if (Byte(kTypeAt) == kHeaders) {
      opens_stream_ = stream > newest_stream_;
      newest_stream_ = std::max(newest_stream_, stream);
    }
    const bool of_headers = Byte(kTypeAt) == kHeaders || Byte(kTypeAt) == kContinuation;
    adds_ = of_headers && opens_stream_ && (Byte(kFlagsAt) & kEndHeaders) != 0;
    stream_ = head_.substr(kStreamAt);
    if (adds_) head_[kFlagsAt] = static_cast<char>(Byte(kFlagsAt) & ~kEndHeaders);
    out.append(head_);
    head_.clear();
    if (payload_left_ == 0) EndFrame(out);
  }

  void EndFrame(std::string& out) {
    if (!adds_) return;
    adds_ = opens_stream_ = false;
    const auto size = static_cast<std::uint32_t>(field_.size());
    out.append(std::string{static_cast<char>(size >> 16), static_cast<char>(size >> 8 & 0xff),
                           static_cast<char>(size & 0xff), static_cast<char>(kContinuation),
                           static_cast<char>(kEndHeaders)});
    out.append(stream_);
    out.append(field_);
  }

  const std::string field_;
  std::size_t preface_left_ = kPreface.size();
  std::string head_;  // of a frame, as far as it has come
  std::size_t payload_left_ = 0;
  std::string stream_;  // four bytes
  std::uint32_t newest_stream_ = 0;
  bool opens_stream_ = false;  // the header block that is under way
  bool adds_ = false;          // when this frame has ended
};

}  // namespace

std::unique_ptr<AddedToken> AddTokenToHttp2(const std::string& token) {
  return std::make_unique<Http2Token>(token);
}

}  // namespace espalier
