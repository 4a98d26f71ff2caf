#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/http2_frame.h"
#include "tuner/forwarding/added_token.h"

namespace espalier {
namespace {

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
        if (!http2::kPreface.substr(http2::kPreface.size() - preface_left_)
                 .starts_with(in.substr(0, n))) {
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
        Move(in, std::min(http2::kHeadBytes - head_.size(), in.size()), head_);
        if (head_.size() == http2::kHeadBytes) BeginFrame(out);
      }
    }
    return absl::OkStatus();
  }

 private:
  static void Move(std::string_view& from, std::size_t n, std::string& to) {
    to.append(from.substr(0, n));
    from.remove_prefix(n);
  }

  void BeginFrame(std::string& out) {
    http2::FrameHead frame = http2::ReadFrameHead(head_);
    head_.clear();
    payload_left_ = frame.payload;
    stream_ = frame.stream;
    // Streams of a client have growing numbers; headers of one that there was are its trailers.
    if (frame.type == http2::kHeaders) {
      opens_stream_ = frame.stream > newest_stream_;
      newest_stream_ = std::max(newest_stream_, frame.stream);
    }
    const bool of_headers = frame.type == http2::kHeaders || frame.type == http2::kContinuation;
    adds_ = of_headers && opens_stream_ && frame.has(http2::kEndHeaders);
    if (adds_) frame.flags &= static_cast<std::uint8_t>(~http2::kEndHeaders);
    out.append(http2::Bytes(frame));
    if (payload_left_ == 0) EndFrame(out);
  }

  void EndFrame(std::string& out) {
    if (!adds_) return;
    adds_ = opens_stream_ = false;
    out.append(http2::Frame(http2::kContinuation, http2::kEndHeaders, stream_, field_));
  }

  const std::string field_;
  std::size_t preface_left_ = http2::kPreface.size();
  std::string head_;  // of a frame, as far as it has come
  std::size_t payload_left_ = 0;
  std::uint32_t stream_ = 0;
  std::uint32_t newest_stream_ = 0;
  bool opens_stream_ = false;  // the header block that is under way
  bool adds_ = false;          // when this frame has ended
};

}  // namespace

std::unique_ptr<AddedToken> AddTokenToHttp2(const std::string& token) {
  return std::make_unique<Http2Token>(token);
}

}  // namespace espalier
