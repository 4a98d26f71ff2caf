#include "trial_runner/agent/processes/frames.h"

#include <gtest/gtest.h>

#include <vector>

namespace espalier {
namespace {

TEST(FrameReader, CutsMessagesThatArriveByteByByte) {
  const std::string bytes = Frame("one") + Frame("") + Frame("three");
  FrameReader reader;
  std::vector<std::string> messages;
  for (const char byte : bytes) {
    reader.Append({&byte, 1});
    while (true) {
      const auto next = reader.Next();
      ASSERT_TRUE(next.ok());
      if (!next->has_value()) break;
      messages.push_back(**next);
    }
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(reader.pending(), 0U);
}

TEST(FrameReader, TakesTheLargestFrameAndRefusesOneByteMore) {
  FrameReader reader;
  reader.Append(Frame(std::string(kMaxFrameBytes, 'x')));
  const auto largest = reader.Next();
  ASSERT_TRUE(largest.ok());
  EXPECT_EQ((*largest)->size(), kMaxFrameBytes);
  reader.Append(Frame(std::string(kMaxFrameBytes + 1, 'x')));
  const auto larger = reader.Next();
  EXPECT_EQ(larger.status().message(),
            "message of 1048577 bytes on the control socket: at most 1048576 are allowed");
}

TEST(Frame, WritesTheLengthLittleEndFirst) {
  EXPECT_EQ(Frame(std::string(258, 'a')).substr(0, 5), std::string("\x02\x01\0\0a", 5));
}

}  // namespace
}  // namespace espalier
