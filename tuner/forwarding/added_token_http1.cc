#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tuner/forwarding/added_token.h"
#include "tuner/forwarding/loopback_listener.h"

namespace espalier {
namespace {

constexpr std::string_view kHeadEnds = "\r\n\r\n";

absl::Status BadRequest(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("bad HTTP request: ", std::string(what)));
}

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// What is within the blanks around it.
std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "localhost:7078", "127.0.0.1", "[::1]:7078"
bool HostIsLoopback(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != std::string_view::npos && NamesLoopback(std::string(host.substr(1, end - 1)));
  }
  return NamesLoopback(std::string(host.substr(0, host.find(':'))));
}

class Http1Token final : public AddedToken {
 public:
  explicit Http1Token(const std::string& token)
      : header_(absl::StrCat("Authorization: Bearer ", token, "\r\n")) {}

  absl::Status Pass(std::string_view in, std::string& out) override {
    while (!in.empty()) {
      if (expected_ == Expected::kBody || expected_ == Expected::kChunk) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
        out.append(in.substr(0, n));
        in.remove_prefix(n);
        left_ -= n;
        if (left_ == 0) {
          expected_ = expected_ == Expected::kBody ? Expected::kHead : Expected::kChunkSize;
        }
        continue;
      }
      // A line of it at a time, so that what follows is not taken for the same.
      const std::size_t line = in.find('\n');
      const std::size_t n = line == std::string_view::npos ? in.size() : line + 1;
      if (held_.size() + n > kMaxForwardedHead) return BadRequest("its head is too long");
      held_.append(in.substr(0, n));
      in.remove_prefix(n);
      if (line != std::string_view::npos) ESPALIER_RETURN_IF_ERROR(EndLine(out));
    }
    return absl::OkStatus();
  }

 private:
  enum class Expected { kHead, kBody, kChunkSize, kChunk, kTrailer };

  absl::Status EndLine(std::string& out) {
    switch (expected_) {
      case Expected::kHead:
        if (held_ == "\r\n") break;  // which may come before a request
        if (!held_.ends_with(kHeadEnds)) return absl::OkStatus();
        ESPALIER_RETURN_IF_ERROR(EndHead(out));
        held_.clear();
        return absl::OkStatus();
      case Expected::kChunkSize:
        ESPALIER_RETURN_IF_ERROR(ReadNumber(held_, 16, left_));
        if (left_ > UINT64_MAX - 2) return BadRequest("a chunk is too long");
        expected_ = left_ == 0 ? Expected::kTrailer : Expected::kChunk;
        if (left_ > 0) left_ += 2;  // with its line's end
        break;
      case Expected::kTrailer:
        if (held_ == "\r\n") expected_ = Expected::kHead;
        break;
      case Expected::kBody:
      case Expected::kChunk:
        break;  // these have no lines
    }
    out.append(held_);
    held_.clear();
    return absl::OkStatus();
  }

  absl::Status EndHead(std::string& out) {
    const std::string_view head = held_;
    const std::size_t begin = head.find("\r\n") + 2;
    bool shows_token = false;
    bool chunked = false;
    std::uint64_t length = 0;
    for (std::size_t at = begin; at + 2 < head.size();) {
      const std::size_t end = head.find("\r\n", at);
      const std::string_view line = head.substr(at, end - at);
      at = end + 2;
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) return BadRequest("a header has no colon");
      const absl::string_view name = Absl(line.substr(0, colon));
      const std::string_view value = Trimmed(line.substr(colon + 1));
      if (absl::EqualsIgnoreCase(name, "Authorization")) shows_token = true;
      if (absl::EqualsIgnoreCase(name, "Content-Length")) {
        ESPALIER_RETURN_IF_ERROR(ReadNumber(value, 10, length));
      }
      if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) {
        if (!absl::EqualsIgnoreCase(Absl(value), "chunked")) {
          return BadRequest("Transfer-Encoding must be chunked");
        }
        chunked = true;
      }
      if (absl::EqualsIgnoreCase(name, "Host") && !HostIsLoopback(value)) {
        return absl::PermissionDeniedError(
            absl::StrCat("this port is called localhost or 127.0.0.1, got Host: ",
                         std::string(value.substr(0, 200))));
      }
    }
    if (chunked && length > 0) return BadRequest("it has two lengths");
    out.append(head.substr(0, begin));
    if (!shows_token) out.append(header_);
    out.append(head.substr(begin));
    left_ = length;
    expected_ = chunked ? Expected::kChunkSize : length > 0 ? Expected::kBody : Expected::kHead;
    return absl::OkStatus();
  }

  static absl::Status ReadNumber(std::string_view text, int base, std::uint64_t& number) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
    const std::string_view rest(read.ptr,
                                static_cast<std::size_t>(text.data() + text.size() - read.ptr));
    // A chunk's size may have extensions.
    const bool whole = base == 16
                           ? rest.empty() || rest[0] == '\r' || rest[0] == ';' || rest[0] == ' '
                           : rest.empty();
    return read.ec == std::errc() && whole ? absl::OkStatus() : BadRequest("a length is none");
  }

  const std::string header_;
  Expected expected_ = Expected::kHead;
  std::string held_;        // of a head or a line that has not all come
  std::uint64_t left_ = 0;  // bytes of a body or chunk
};

}  // namespace

std::unique_ptr<AddedToken> AddTokenToHttp1(const std::string& token) {
  return std::make_unique<Http1Token>(token);
}

}  // namespace espalier
