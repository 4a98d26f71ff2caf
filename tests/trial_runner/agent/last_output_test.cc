#include "trial_runner/agent/last_output.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(LastLines, KeepsAShortTextWhole) { EXPECT_EQ(LastLines("a\nb\n", 4), "a\nb\n"); }

TEST(LastLines, BeginsAtALine) {
  EXPECT_EQ(LastLines("first\nsecond\nthird\n", 10), "third\n");
  EXPECT_EQ(LastLines("first\nsecond\n", 7), "second\n");
}

TEST(LastLines, CutsALongLineAtACharacter) {
  EXPECT_EQ(LastLines("0123456789", 4), "6789");
  EXPECT_EQ(LastLines("aaa\xc3\xa4"
                      "bbb",
                      4),
            "bbb");
}

TEST(ValidUtf8, ReplacesWhatIsNotACharacter) {
  EXPECT_EQ(ValidUtf8("ok \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "ok \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(ValidUtf8("\xff|\xc3|\xc0\xaf|\xed\xa0\x80"), "?|?|??|???");
  EXPECT_EQ(ValidUtf8("cut \xe2\x82"), "cut ??");
}

}  // namespace
}  // namespace espalier
