#include "base/shortened.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("", 0), "");
  EXPECT_EQ(Shortened("four", 4), "four");
  EXPECT_EQ(Shortened("four", 3), "fou...");
  EXPECT_EQ(Shortened("a\xc3\xa9z", 2), "a...") << "in the midst of one of two bytes";
  EXPECT_EQ(Shortened("a\xc3\xa9z", 3), "a\xc3\xa9...");
  EXPECT_EQ(Shortened("\xe2\x82\xac", 2), "...");
}

}  // namespace
}  // namespace espalier
