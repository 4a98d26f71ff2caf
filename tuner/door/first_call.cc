#include "tuner/door/first_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("no call of gRPC: ", std::string(what)));
}

absl::Status TooMuch(std::string_view what, std::size_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(what), " of more than ", most, " bytes"));
}

}  // namespace

absl::Status FirstCall::Take(std::string_view in) {
  const std::size_t most = whole_ ? kMaxAdmittedBytes : kMaxFirstBytes;
  if (in.size() > most - std::min(most, said_.size())) return TooMuch("a first call", most);
  said_.append(in);
  const std::string_view preface = std::string_view(said_).substr(0, http2::kPreface.size());
  if (!http2::kPreface.starts_with(preface)) return Wrong("it is not HTTP/2");
  if (preface.size() < http2::kPreface.size()) return absl::OkStatus();
  at_ = std::max(at_, preface.size());
  while (said_.size() - at_ >= http2::kHeadBytes) {
    const auto left = std::string_view(said_).substr(at_);
    const http2::FrameHead frame = http2::ReadFrameHead(left.substr(0, http2::kHeadBytes));
    if (frame.payload > http2::kMaxPayload) return Wrong("a frame of more than 16384 bytes");
    const std::size_t size = http2::kHeadBytes + frame.payload;
    if (left.size() < size) break;
    if (frame.type == http2::kSettings && frame.has(http2::kAcknowledges) && !acknowledged_ &&
        settings_) {
      acknowledged_ = true;
      said_.erase(at_, size);
      continue;
    }
    ESPALIER_RETURN_IF_ERROR(TakeFrame(frame, left.substr(http2::kHeadBytes, frame.payload)));
    at_ += size;
  }
  return absl::OkStatus();
}

absl::Status FirstCall::TakeFrame(const http2::FrameHead& frame, std::string_view payload) {
  if (!settings_) {
    settings_ = frame.type == http2::kSettings && !frame.has(http2::kAcknowledges);
    return settings_ ? absl::OkStatus() : Wrong("it does not begin with SETTINGS");
  }
  if (whole_) return absl::OkStatus();
  if (in_block_ != (frame.type == http2::kContinuation)) {
    return Wrong("a header block that is not in one piece");
  }
  if (frame.type == http2::kData) return Wrong("DATA before HEADERS");
  if (frame.type == http2::kHeaders || in_block_) return TakeHeaders(frame, payload);
  return absl::OkStatus();
}

absl::Status FirstCall::TakeHeaders(const http2::FrameHead& frame, std::string_view payload) {
  if (in_block_ && frame.stream != stream_) return Wrong("a header block of two streams");
  if (frame.stream % 2 == 0) return Wrong("a stream of an even number");
  stream_ = frame.stream;
  if (frame.type == http2::kHeaders) {
    std::size_t padding = 0;
    if (frame.has(http2::kPadded)) {
      if (payload.empty()) return Wrong("HEADERS without the padding that they tell of");
      padding = static_cast<std::uint8_t>(payload.front());
      payload.remove_prefix(1);
    }
    const std::size_t priority = frame.has(http2::kPriority) ? 5 : 0;
    if (payload.size() < padding + priority) return Wrong("HEADERS that are all padding");
    payload.remove_prefix(priority);
    payload.remove_suffix(padding);
  }
  if (block_.size() + payload.size() > kMaxHeaderBlock) {
    return TooMuch("a header block", kMaxHeaderBlock);
  }
  block_.append(payload);
  in_block_ = !frame.has(http2::kEndHeaders);
  if (in_block_) return absl::OkStatus();
  ESPALIER_ASSIGN_OR_RETURN(head_, ReadCallHead(block_));
  block_ = std::string();
  whole_ = true;
  return absl::OkStatus();
}

bool HeaderBlocks::Pass(std::string_view in) {
  while (!in.empty()) {
    if (const std::size_t skipped = std::min(std::max(preface_left_, payload_left_), in.size());
        skipped > 0) {
      preface_left_ -= std::min(preface_left_, skipped);
      payload_left_ -= std::min(payload_left_, skipped);
      in.remove_prefix(skipped);
      continue;
    }
    const std::size_t n = std::min(http2::kHeadBytes - head_.size(), in.size());
    head_.append(in.substr(0, n));
    in.remove_prefix(n);
    if (head_.size() < http2::kHeadBytes) break;
    const http2::FrameHead frame = http2::ReadFrameHead(head_);
    head_.clear();
    payload_left_ = frame.payload;
    if (frame.type != http2::kHeaders && frame.type != http2::kContinuation) continue;
    block_ += http2::kHeadBytes + frame.payload;
    if (block_ > kMaxHeaderBlock) return false;
    if (frame.has(http2::kEndHeaders)) block_ = 0;
  }
  return true;
}

}  // namespace espalier
