#include "base/protocol.h"

#include <gmock/gmock.h>

#include <string>

namespace espalier {
namespace {

std::string Refusal(const Speaker& other, const Speaker& self) {
  return std::string(AgreeOnProtocol(other, self).status().message());
}

TEST(Protocol, TheNewestThatBothSpeakIsSpoken) {
  const Speaker next{"agent n1", 3, 2, "0.3.0"};
  EXPECT_EQ(*AgreeOnProtocol(next, {"this service", 2, 1, "0.2.0"}), 2);
  EXPECT_EQ(*AgreeOnProtocol({"agent n1", 2, 1, "0.2.0"}, {"this service", 3, 2, "0.3.0"}), 2);
  EXPECT_EQ(*AgreeOnProtocol(next, next), 3);
  EXPECT_EQ(*AgreeOnProtocol(ThisSpeaker("agent n1"), ThisSpeaker("this service")), kProtocol);
}

TEST(Protocol, WhoIsTooOldIsToBeUpgraded) {
  EXPECT_EQ(Refusal({"agent n1", 3, 3, "0.3.0"}, {"this service", 2, 1, "0.2.0"}),
            "agent n1 speaks protocol 3 (release 0.3.0), this service speaks 1 to 2 "
            "(release 0.2.0): upgrade this service");
  EXPECT_EQ(Refusal({"agent n1", 1, 1, "0.1.0"}, {"this service", 3, 2, "0.3.0"}),
            "agent n1 speaks protocol 1 (release 0.1.0), this service speaks 2 to 3 "
            "(release 0.3.0): upgrade agent n1");
}

TEST(Protocol, WhoSaysNothingSpeaksTheFirst) {
  EXPECT_EQ(*AgreeOnProtocol({"agent n1"}, {"this service", 2, 1, "0.2.0"}), 1);
  EXPECT_EQ(Refusal({"agent n1"}, {"this service", 3, 2, "0.3.0"}),
            "agent n1 speaks protocol 1, this service speaks 2 to 3 (release 0.3.0): upgrade "
            "agent n1");
}

TEST(Protocol, IsSaidInAText) {
  const absl::StatusOr<Speaker> speaker = SpeakerFrom("agent n1", "3 2 0.3.0 and what comes later");
  ASSERT_TRUE(speaker.ok()) << speaker.status();
  EXPECT_EQ(speaker->newest, 3);
  EXPECT_EQ(speaker->oldest, 2);
  EXPECT_EQ(speaker->release, "0.3.0");
  EXPECT_TRUE(AgreeOnProtocol(*SpeakerFrom("it", ProtocolText()), ThisSpeaker("this")).ok());
  for (const char* text : {"", "x", "1", "1 2 0.1.0", "1 0 0.1.0", "-1 -1 0.1.0"}) {
    EXPECT_FALSE(SpeakerFrom("agent n1", text).ok()) << text;
  }
}

TEST(Protocol, TheNextReleaseSpeaksThisOnes) {
  EXPECT_LE(kOldestProtocol, kProtocol);
  EXPECT_LE(kOldestProtocol, kProtocol == 1 ? 1 : kProtocol - 1);
}

}  // namespace
}  // namespace espalier
