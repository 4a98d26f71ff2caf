#include "tuner/door/first_call.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/door/http2_client.h"

namespace espalier {
namespace {

using http2::Frame;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FirstCall, IsTheSameHoweverTheNetworkCutsIt) {
  const std::string block = HeaderBlock("/espalier.v1.Tuner/ListStudies", "Bearer one");
  std::string padded(1, '\3');
  padded += std::string(5, '\0') + block.substr(0, 10) + "xxx";
  const std::string ping = Frame(6, 0, 0, std::string(8, 'p'));
  const std::string call = Frame(http2::kHeaders, http2::kPadded | http2::kPriority, 1, padded) +
                           Frame(http2::kContinuation, 0, 1, block.substr(10, 7)) +
                           Frame(http2::kContinuation, http2::kEndHeaders, 1, block.substr(17));
  const std::string data = Frame(http2::kData, http2::kEndStream, 1, "body");
  const std::string said = kBegin + kAcknowledge + ping + call + data;
  for (std::size_t piece = 1; piece <= said.size(); ++piece) {
    FirstCall first;
    for (std::size_t at = 0; at < said.size(); at += piece) {
      const absl::Status taken = first.Take(std::string_view(said).substr(at, piece));
      ASSERT_TRUE(taken.ok()) << taken << " in pieces of " << piece;
    }
    ASSERT_TRUE(first.whole() && first.acknowledged()) << piece;
    EXPECT_EQ(first.head().path, "/espalier.v1.Tuner/ListStudies");
    EXPECT_THAT(first.head().authorizations, ElementsAre("Bearer one"));
    EXPECT_EQ(first.stream(), 1u);
    EXPECT_EQ(first.TakeSaid(), kBegin + ping + call + data);
  }
}

TEST(FirstCall, AClientMayAcknowledgeAfterItHasCalled) {
  FirstCall first;
  const std::string call =
      kBegin + Frame(http2::kHeaders, http2::kEndHeaders, 1, HeaderBlock("/a/B", ""));
  ASSERT_TRUE(first.Take(call).ok());
  EXPECT_TRUE(first.whole());
  EXPECT_FALSE(first.acknowledged());
  ASSERT_TRUE(first.Take(kAcknowledge + kAcknowledge).ok());
  EXPECT_TRUE(first.acknowledged());
  EXPECT_EQ(first.TakeSaid(), call + kAcknowledge) << "one of ours alone is kept back";
}

TEST(FirstCall, NamesWhatIsWrong) {
  const std::string block = HeaderBlock("/a/B", "");
  const auto headers = [&](std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
    return Frame(http2::kHeaders, flags, stream, payload);
  };
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"GET / HTTP/1.1\r\n", "it is not HTTP/2"},
      {"PRI * HTTP/2.1", "it is not HTTP/2"},
      {std::string(http2::kPreface) + Frame(6, 0, 0, std::string(8, 'p')), "begin with SETTINGS"},
      {std::string(http2::kPreface) + kAcknowledge, "begin with SETTINGS"},
      {kBegin + Frame(http2::kData, 0, 1, "x"), "DATA before HEADERS"},
      {kBegin + Frame(http2::kContinuation, 0, 1, "x"), "not in one piece"},
      {kBegin + headers(0, 1, block) + headers(0, 1, block), "not in one piece"},
      {kBegin + headers(0, 1, block) + Frame(http2::kContinuation, 0, 3, "x"), "two streams"},
      {kBegin + headers(http2::kEndHeaders, 2, block), "an even number"},
      {kBegin + headers(http2::kEndHeaders | http2::kPadded, 1, ""), "without the padding"},
      {kBegin + headers(http2::kEndHeaders | http2::kPadded, 1, "\x09xx"), "all padding"},
      {kBegin + headers(http2::kEndHeaders | http2::kPriority, 1, "xx"), "all padding"},
      {kBegin + headers(http2::kEndHeaders, 1, "\x80"), "malformed header block"},
      {kBegin + headers(0, 1, std::string(20'000, 'x')), "more than 16384 bytes"},
  };
  for (const auto& [said, what] : bad) {
    FirstCall first;
    EXPECT_THAT(std::string(first.Take(said).message()), HasSubstr(what));
  }
}

TEST(FirstCall, HoldsNoMoreThanItsLimits) {
  // Whatever a client goes on to say: the rest of one header, headers, frames of all kinds, or of
  // none.
  const std::string half(8 << 10, 'x');
  const std::string begin = kBegin + Frame(http2::kHeaders, 0, 1, half);
  for (const std::string& more :
       {Frame(http2::kContinuation, 0, 1, half), Frame(http2::kContinuation, 0, 1, "x"),
        Frame(http2::kContinuation, 0, 1, "")}) {
    FirstCall first;
    absl::Status taken = first.Take(begin);
    ASSERT_TRUE(taken.ok()) << taken;
    for (int i = 0; i < 10'000 && taken.ok(); ++i) taken = first.Take(more);
    EXPECT_EQ(taken.code(), absl::StatusCode::kResourceExhausted) << taken;
    EXPECT_LE(first.bytes(), 2 * (kMaxFirstBytes + kMaxHeaderBlock));
  }
  FirstCall pings;
  absl::Status taken = pings.Take(kBegin);
  for (int i = 0; i < 10'000 && taken.ok(); ++i) taken = pings.Take(Frame(6, 0, 0, "12345678"));
  EXPECT_EQ(taken.code(), absl::StatusCode::kResourceExhausted) << taken;
}

TEST(HeaderBlocks, AreCountedEachForItself) {
  const std::string ten(10 << 10, 'x');
  const std::string whole = Frame(http2::kHeaders, http2::kEndHeaders, 1, ten);
  const std::string begun = Frame(http2::kHeaders, 0, 1, ten);
  const std::string more = Frame(http2::kContinuation, 0, 1, ten);
  const std::string data = Frame(http2::kData, 0, 1, std::string(16'000, 'd'));
  const auto pass = [](const std::string& said, std::size_t piece) {
    HeaderBlocks blocks;
    for (std::size_t at = 0; at < said.size(); at += piece) {
      if (!blocks.Pass(std::string_view(said).substr(at, piece))) return false;
    }
    return true;
  };
  std::string empty_ones = begun;
  for (int i = 0; i < 1000; ++i) empty_ones += Frame(http2::kContinuation, 0, 1, "");
  for (const std::size_t piece : {1, 7, 4096, 1 << 20}) {
    EXPECT_TRUE(pass(kBegin + whole + data + data + whole + whole, piece)) << piece;
    EXPECT_FALSE(pass(kBegin + whole + data + begun + more, piece)) << piece;
    EXPECT_FALSE(pass(kBegin + empty_ones, piece)) << piece;
  }
}

}  // namespace
}  // namespace espalier
