#include "tuner/server/access/proxied_at.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

const ProxiedAt kNone;
const ProxiedAt kBelow{.hosts = {"hub.example.org", "hub.example.org:8443"},
                       .prefix = "/user/ada/tuner"};

TEST(ProxiedAt, KnowsTheHostsThatItWasGiven) {
  EXPECT_TRUE(kBelow.Names("hub.example.org"));
  EXPECT_TRUE(kBelow.Names("Hub.Example.org:8443"));
  EXPECT_FALSE(kBelow.Names("hub.example.org:80"));
  EXPECT_FALSE(kBelow.Names("evil.hub.example.org"));
  EXPECT_FALSE(kBelow.Names(""));
  EXPECT_FALSE(kNone.Names(""));
}

TEST(ProxiedAt, TakesThePrefixOff) {
  EXPECT_EQ(kBelow.Stripped("/user/ada/tuner/api/pool?x=1"), "/api/pool?x=1");
  EXPECT_EQ(kBelow.Stripped("/user/ada/tuner/"), "/");
  EXPECT_EQ(kBelow.Stripped("/user/ada/tuner"), "/");
  EXPECT_EQ(kBelow.Stripped("/user/ada/tuner?x=1"), "/");
  EXPECT_EQ(kBelow.Stripped("/user/ada/tuner2/api"), "/user/ada/tuner2/api");
  EXPECT_EQ(kBelow.Stripped("/api/pool"), "/api/pool");
  EXPECT_EQ(kNone.Stripped("/api/pool"), "/api/pool");
}

TEST(ProxiedAt, LeadsFromEachPageToTheBeginning) {
  EXPECT_EQ(kNone.BaseFrom("/"), "");
  EXPECT_EQ(kNone.BaseFrom("/ui"), "");
  EXPECT_EQ(kNone.BaseFrom("/ui/"), "../");
  EXPECT_EQ(kNone.BaseFrom("/ui/studies/3?from=/a/b/c"), "../../");
  EXPECT_EQ(kNone.BaseFrom("/ui/studies/3/trials/7"), "../../../../");
  EXPECT_EQ(kBelow.BaseFrom("/user/ada/tuner/ui/studies/3"), "../../");
  EXPECT_EQ(kBelow.BaseFrom("/user/ada/tuner/"), "");
  EXPECT_EQ(kBelow.BaseFrom("/user/ada/tuner"), "tuner/");
  // A proxy that takes the path off.
  EXPECT_EQ(kBelow.BaseFrom("/ui/studies/3"), "../../");
}

}  // namespace
}  // namespace espalier
