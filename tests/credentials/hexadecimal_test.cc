#include "tuner/credentials/hexadecimal.h"

#include "gtest/gtest.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
namespace {

// RFC 4231, test case 2.
TEST(Hexadecimal, KeyedHashIsHmacSha256) {
  const std::string expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
  EXPECT_EQ(KeyedHash("Jefe", "what do ya want for nothing?"), expected);
  EXPECT_EQ(Hexadecimal(HmacSha256("Jefe", "what do ya want for nothing?")), expected);
  EXPECT_EQ(HmacSha256("", "").size(), 32u);
}

TEST(Hexadecimal, RandomBytesAreAsManyAsAskedForAndNeverTheSame) {
  EXPECT_EQ(RandomBytes(16).size(), 16u);
  EXPECT_NE(RandomBytes(16), RandomBytes(16));
  EXPECT_TRUE(IsHexadecimal(RandomHexadecimal(16), 32));
}

TEST(Hexadecimal, SameTextComparesAllOfIt) {
  EXPECT_TRUE(SameText("secret", "secret"));
  EXPECT_FALSE(SameText("ecret", "secret"));
  EXPECT_FALSE(SameText("secreT", "secret"));
  EXPECT_FALSE(SameText("", "secret"));
}

}  // namespace
}  // namespace espalier
