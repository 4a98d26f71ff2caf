#include "tuner/door/call_head.h"

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Bytes as they stand in RFC 7541, appendix C.
std::string Bytes(std::string_view hexadecimal) {
  std::string bytes;
  int digits = 0;
  int value = 0;
  for (const char digit : hexadecimal) {
    if (digit == ' ') continue;
    value = value * 16 + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
    if (++digits % 2 == 0) bytes.push_back(static_cast<char>(std::exchange(value, 0)));
  }
  return bytes;
}

std::string Literal(std::string_view name, std::string_view value, char kind = 0x40) {
  std::string bytes(1, kind);
  bytes.push_back(static_cast<char>(name.size()));
  bytes.append(name).push_back(static_cast<char>(value.size()));
  return bytes.append(value);
}

TEST(CallHead, ReadsTheExamplesOfTheRfc) {
  const auto literal_path = ReadCallHead(Bytes("040c 2f73 616d 706c 652f 7061 7468"));  // C.2.2
  ASSERT_TRUE(literal_path.ok()) << literal_path.status();
  EXPECT_EQ(literal_path->path, "/sample/path");
  // C.4.1: indexed fields, and an authority that is Huffman coded.
  const auto request = ReadCallHead(Bytes("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->path, "/");
  EXPECT_THAT(request->authorizations, IsEmpty());
}

TEST(CallHead, UnpacksWhatIsHuffmanCoded) {
  // The header of C.4.3, "custom-key: custom-value", where the key is another's: an authorization
  // whose value is "custom-value".
  const auto head = ReadCallHead(Bytes("5789 25a8 49e9 5bb8 e8b4 bf"));
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_THAT(head->authorizations, ElementsAre("custom-value"));
}

TEST(CallHead, FindsFieldsInTheTableThatTheBlockMakes) {
  const std::string block = Literal("authorization", "Bearer one") + Literal("x", "y") +
                            Literal(":path", "/a/B", 0x00) + "\xbf" +  // index 63, the first
                            Bytes("0f30 0162");                        // name of 63, never indexed
  const auto head = ReadCallHead(block);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->path, "/a/B");
  EXPECT_THAT(head->authorizations, ElementsAre("Bearer one", "Bearer one", "b"));
}

TEST(CallHead, ForgetsWhatDoesNotFitInTheTable) {
  std::string block = Literal("authorization", "Bearer one");
  // 41 entries of 32 + 69 bytes are more than 4,096.
  for (int i = 0; i < 41; ++i) block += Literal("n", std::string(68, 'v'));
  EXPECT_TRUE(ReadCallHead(block).ok());
  EXPECT_THAT(ReadCallHead(block + "\xe6").status().message(), HasSubstr("malformed"));
  // A table of no bytes, as a client may ask for.
  EXPECT_THAT(ReadCallHead("\x20" + Literal("a", "b") + "\xbe").status().message(),
              HasSubstr("malformed"));
}

TEST(CallHead, RefusesWhatIsMalformed) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"80", "a field without a number"},
      {"be", "a field that is not in the table"},
      {"ff", "the end within a number"},
      {"ff ffff ffff 0f", "a number that is too large"},
      {"ff 8080 8080 8080 8080 8080 00", "zeros without end"},
      {"3f e2 1f", "a table that is too large"},
      {"40 05 6162", "the end within a text"},
      {"40 01 61", "the end before a number"},
      {"40", "the end before a number"},
      {"04 84 ffff ffff", "a text that holds its end"},
      {"04 81 00", "the end within a code"},
      {"04 82 07 ff", "the end within a code"},
  };
  for (const auto& [block, what] : bad) {
    const auto head = ReadCallHead(Bytes(block));
    EXPECT_EQ(head.status().code(), absl::StatusCode::kInvalidArgument) << what;
    EXPECT_THAT(std::string(head.status().message()), HasSubstr("malformed header block")) << what;
  }
  // Any bytes at all are read to their end or refused.
  std::string noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 1664525 + 1013904223;
    noise.push_back(static_cast<char>(state >> 24));
    (void)ReadCallHead(std::string_view(noise).substr(noise.size() - noise.size() % 300));
  }
}

}  // namespace
}  // namespace espalier
