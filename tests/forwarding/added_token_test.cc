#include "tuner/forwarding/added_token.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using testing::HasSubstr;

const std::string kToken = "esp1.01234567." + std::string(64, 'a') + "." + std::string(64, 'b');
const std::string kHeader = "Authorization: Bearer " + kToken + "\r\n";
const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// In pieces of every size: what comes of it must not depend on how the network cuts it.
template <typename Make>
std::string Passed(Make make, const std::string& in) {
  std::string first;
  for (std::size_t piece = 1; piece <= in.size(); ++piece) {
    const std::unique_ptr<AddedToken> added = make(kToken);
    std::string out;
    for (std::size_t at = 0; at < in.size(); at += piece) {
      EXPECT_TRUE(added->Pass(std::string_view(in).substr(at, piece), out).ok())
          << in.substr(0, at);
    }
    if (piece == 1) first = out;
    EXPECT_EQ(out, first) << piece;
  }
  return first;
}

absl::Status Refusal(const std::string& in) {
  std::string out;
  const absl::Status status = AddTokenToHttp1(kToken)->Pass(in, out);
  EXPECT_EQ(out, "");
  return status;
}

TEST(AddTokenToHttp1, AddsAHeaderToEachRequestOfAConnection) {
  const std::string get = "GET /api/studies HTTP/1.1\r\n";
  const std::string post = "POST /api/x HTTP/1.1\r\n";
  const std::string host = "Host: localhost:7078\r\n\r\n";
  const std::string counted = "content-length:  5\r\nHost: 127.0.0.1\r\n\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\nHost: [::1]:7078\r\n\r\n";
  // Bodies that look like requests are none.
  const std::string body = "GET /";
  const std::string chunks = "7;x=y\r\nGET / H\r\n1\r\n\n\r\n0\r\nTrailer: x\r\n\r\n";
  EXPECT_EQ(Passed(AddTokenToHttp1,
                   get + host + post + counted + body + post + chunked + chunks + get + host),
            get + kHeader + host + post + kHeader + counted + body + post + kHeader + chunked +
                chunks + get + kHeader + host);
}

TEST(AddTokenToHttp1, LeavesATokenThatIsShown) {
  const std::string request =
      "GET / HTTP/1.1\r\nauthorization: Bearer mine\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(Passed(AddTokenToHttp1, request), request);
}

TEST(AddTokenToHttp1, RefusesPagesThatFoundUsUnderANameOfTheirs) {
  for (const std::string host :
       {"evil.example:7078", "localhost.evil.example", "10.0.0.1", "[fd77::1]:7078", ""}) {
    const absl::Status refused = Refusal("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << host;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("Host: " + host));
  }
}

TEST(AddTokenToHttp1, RefusesWhatItCannotFollow) {
  const std::string begin = "POST / HTTP/1.1\r\n";
  for (const std::string head :
       {"Content-Length: five\r\n\r\n", "Transfer-Encoding: gzip\r\n\r\n", "nonsense\r\n\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Refusal(begin + head))) << head;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      Refusal(begin + "X: " + std::string(kMaxForwardedHead, 'x') + "\r\n")));
  std::string out;
  const std::unique_ptr<AddedToken> added = AddTokenToHttp1(kToken);
  EXPECT_TRUE(added->Pass(begin + "Transfer-Encoding: chunked\r\n\r\n", out).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(added->Pass("xyz\r\n", out)));
}

std::string Frame(int type, int flags, int stream, const std::string& payload) {
  const auto byte = [](std::size_t value) { return static_cast<char>(value); };
  const std::size_t n = payload.size();
  return std::string{byte(n >> 16),
                     byte(n >> 8),
                     byte(n),
                     byte(static_cast<std::size_t>(type)),
                     byte(static_cast<std::size_t>(flags)),
                     0,
                     0,
                     0,
                     byte(static_cast<std::size_t>(stream))} +
         payload;
}

TEST(AddTokenToHttp2, AddsAFieldToTheFirstHeaderBlockOfEachStream) {
  constexpr int kData = 0;
  constexpr int kHeaders = 1;
  constexpr int kSettings = 4;
  constexpr int kContinuation = 9;
  constexpr int kEndStream = 1;
  constexpr int kEnd = 4;
  const std::string value = "Bearer " + kToken;
  ASSERT_LT(value.size(), 127U + 128U);
  const std::string field =
      std::string("\x10\x0d") + "authorization\x7f" + static_cast<char>(value.size() - 127) + value;
  const std::string settings = Frame(kSettings, 0, 0, "");
  const std::string data = Frame(kData, kEndStream, 1, std::string(300, '\x01'));
  const std::string trailers = Frame(kHeaders, kEnd | kEndStream, 1, "trailers");
  EXPECT_EQ(
      Passed(AddTokenToHttp2,
             kPreface + settings + Frame(kHeaders, kEnd, 1, "one") + data + trailers +
                 Frame(kHeaders, kEndStream, 3, "be") + Frame(kContinuation, 0, 3, "gi") +
                 Frame(kContinuation, kEnd, 3, "n") + settings + Frame(kHeaders, kEnd, 5, "")),
      kPreface + settings + Frame(kHeaders, 0, 1, "one") + Frame(kContinuation, kEnd, 1, field) +
          data + trailers + Frame(kHeaders, kEndStream, 3, "be") +
          Frame(kContinuation, 0, 3, "gi") + Frame(kContinuation, 0, 3, "n") +
          Frame(kContinuation, kEnd, 3, field) + settings + Frame(kHeaders, 0, 5, "") +
          Frame(kContinuation, kEnd, 5, field));
}

TEST(AddTokenToHttp2, RefusesWhatIsNoHttp2) {
  std::string out;
  EXPECT_TRUE(absl::IsInvalidArgument(AddTokenToHttp2(kToken)->Pass("PRINT", out)));
}

}  // namespace
}  // namespace espalier
