#include "tuner/cli/views/page_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ForwardingCommand, BringsThePortToWhereTheUserCameFrom) {
  const Login login{.connection = "10.0.0.7 50122 10.0.0.5 22", .user = "ada"};
  EXPECT_EQ(ForwardingCommand("127.0.0.1", 7078, login),
            "ssh -N -L 7078:127.0.0.1:7078 ada@10.0.0.5");
  EXPECT_EQ(ForwardingCommand("::1", 7078, login), "ssh -N -L 7078:[::1]:7078 ada@10.0.0.5");
}

TEST(ForwardingCommand, NamesAPortOfSshThatIsNotTheUsualOne) {
  const Login login{.connection = "10.0.0.7 50122 10.0.0.5 2222", .user = "ada"};
  EXPECT_EQ(ForwardingCommand("127.0.0.1", 7078, login),
            "ssh -N -L 7078:127.0.0.1:7078 -p 2222 ada@10.0.0.5");
}

TEST(ForwardingCommand, GoesByTheMachineOfTheLoginWhereWeRunOnAnotherOne) {
  Login login{.connection = "10.0.0.7 50122 10.0.0.5 22",
              .user = "ada",
              .ends_here = false,
              .machine = "node3"};
  EXPECT_EQ(ForwardingCommand("127.0.0.1", 7078, login),
            "ssh -N -L 7078:127.0.0.1:7078 -J ada@10.0.0.5 ada@node3");
  login.connection = "fd00::7 50122 fd00::5 2222";
  EXPECT_EQ(ForwardingCommand("127.0.0.1", 7078, login),
            "ssh -N -L 7078:127.0.0.1:7078 -J ada@[fd00::5]:2222 ada@node3");
}

TEST(ForwardingCommand, IsNoneWhereNobodyCameOverSsh) {
  EXPECT_EQ(ForwardingCommand("127.0.0.1", 7078, {.user = "ada"}), "");
  EXPECT_EQ(ForwardingCommand("127.0.0.1", 7078, {.connection = "10.0.0.7", .user = "ada"}), "");
}

TEST(BrowserCommands, AreThoseOfTheVariableAndThenTheDesktops) {
  EXPECT_THAT(BrowserCommands("firefox --new-tab %s:w3m", true, "http://127.0.0.1:7078/"),
              ElementsAre(ElementsAre("firefox", "--new-tab", "http://127.0.0.1:7078/"),
                          ElementsAre("w3m", "http://127.0.0.1:7078/"),
                          ElementsAre("xdg-open", "http://127.0.0.1:7078/")));
}

TEST(BrowserCommands, AreNoneWithoutVariableAndDisplay) {
  EXPECT_THAT(BrowserCommands("", false, "http://127.0.0.1:7078/"), IsEmpty());
  EXPECT_THAT(BrowserCommands(" : ", false, "http://127.0.0.1:7078/"), IsEmpty());
}

}  // namespace
}  // namespace espalier
