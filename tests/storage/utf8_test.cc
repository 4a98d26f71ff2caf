#include "tuner/storage/utf8.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(Utf8, TakesEveryLength) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain"));
  EXPECT_TRUE(IsUtf8("größer ≥ 木 🌳"));
  EXPECT_TRUE(IsUtf8("\xf4\x8f\xbf\xbf")) << "the last code point";
}

TEST(Utf8, RefusesWhatIsNone) {
  EXPECT_FALSE(IsUtf8("\x80"));
  EXPECT_FALSE(IsUtf8("\xc3"));
  EXPECT_FALSE(IsUtf8("\xc3("));
  EXPECT_FALSE(IsUtf8("\xe2\x82"));
  EXPECT_FALSE(IsUtf8("\xc0\xaf")) << "overlong";
  EXPECT_FALSE(IsUtf8("\xe0\x80\xaf")) << "overlong";
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80")) << "a surrogate";
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80")) << "above the last code point";
  EXPECT_FALSE(IsUtf8("\xff"));
}

}  // namespace
}  // namespace espalier
