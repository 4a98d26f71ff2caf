#include "base/port_range.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(PortRange, IsReadAndWrittenAlike) {
  const auto range = ParsePortRange("7100-7163");
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->size(), 64);
  EXPECT_EQ(range->text(), "7100-7163");
  EXPECT_FALSE(range->any());
  EXPECT_TRUE(PortRange().any());
}

TEST(PortRange, WhatIsNoneIsAnErrorThatQuotesIt) {
  for (const char* text :
       {"", "7100", "7163-7100", "80-90", "7100-70000", "a-b", "7100-7163-7200"}) {
    const auto range = ParsePortRange(text);
    ASSERT_FALSE(range.ok()) << text;
    EXPECT_NE(range.status().message().find(text), std::string::npos);
    EXPECT_NE(range.status().message().find("want LOW-HIGH within 1024-65535"), std::string::npos);
  }
}

}  // namespace
}  // namespace espalier
