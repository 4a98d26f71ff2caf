// What engines promise whose machines are asked for elsewhere, whatever becomes of what they ask.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/private_files.h"
#include "tests/contract/engines_under_test.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Fate = FakeMachines::Fate;

TEST(ReconcilingEngine, WhateverBecomesOfARequestOneMachineIsThere) {
  for (const Fate fate :
       {Fate::kLost, Fate::kDoubled, Fate::kLate, Fate::kUnheard, Fate::kRefused}) {
    SCOPED_TRACE(static_cast<int>(fate));
    FakeUnderTest fake;
    fake.machines().SetFate(fate);
    fake.engine().StartNode("pool-1");
    // At least until it has happened once.
    ASSERT_TRUE(fake.Await([&] {
      return fate == Fate::kRefused ? !fake.engine().Troubles().empty()
                                    : fate == Fate::kLost || fake.Joined("pool-1") > 0;
    }));
    fake.machines().SetFate(Fate::kDone);
    fake.engine().StartNode("pool-2");
    const std::map<std::string, int> wanted = {{"pool-1", 1}, {"pool-2", 1}};
    ASSERT_TRUE(fake.Await([&] { return fake.machines().Nodes() == wanted; }));
    EXPECT_TRUE(fake.Await([&] { return fake.engine().Troubles().empty(); }));
    fake.engine().Stop();
    EXPECT_THAT(fake.machines().Nodes(), IsEmpty());
  }
}

// The wishes of a pool that grows and shrinks, with every fault at once, and crashes of the
// service.
TEST(ReconcilingEngine, EndsInExactlyWhatIsWanted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    FakeUnderTest fake(seed);
    fake.machines().SetFaulty(true);
    std::set<std::string> wanted;
    for (int i = 0; i < 20; ++i) {
      const std::string node = "pool-" + std::to_string(1 + random.Below(4));
      if (random.Below(8) == 0) {
        fake.Crash();
        fake.Restart();
        // The core asks for those that it misses, and releases those that it has no use for.
        for (const char* known : {"pool-1", "pool-2", "pool-3", "pool-4"}) {
          wanted.contains(known) ? fake.engine().StartNode(known)
                                 : fake.engine().ReleaseNode(known);
        }
      } else if (random.Below(3) > 0) {
        wanted.insert(node);
        fake.engine().StartNode(node);
      } else {
        wanted.erase(node);
        fake.engine().ReleaseNode(node);
      }
      const int before = fake.Joined(node);
      if (random.Below(2) == 0) fake.Await([&] { return fake.Joined(node) >= before; });
    }
    fake.machines().SetFaulty(false);
    std::map<std::string, int> all;
    for (const std::string& node : wanted) all[node] = 1;
    // A machine that was lost by the fault of its provider is one that has ended: asked for anew.
    ASSERT_TRUE(fake.Await([&] {
      for (const std::string& node : wanted) fake.engine().StartNode(node);
      return fake.machines().Nodes() == all;
    }));
    fake.engine().Stop();
    ASSERT_THAT(fake.machines().Nodes(), IsEmpty()) << "none is left over";
  }
}

TEST(ReconcilingEngine, ConcludesNothingWhileTheProviderIsAwayAndSaysSoOnce) {
  FakeUnderTest fake;
  fake.engine().StartNode("pool-1");
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-1"); }));
  fake.machines().SetReachable(false);
  // It may just have asked what there is, and would ask for more.
  ASSERT_TRUE(fake.Await([&] { return !fake.engine().Troubles().empty(); }));
  fake.engine().StartNode("pool-2");
  EXPECT_THAT(fake.engine().Troubles(),
              ElementsAre("engine: what there is cannot be told, so that nothing is started or "
                          "ended: unable to contact the controller"));
  EXPECT_EQ(fake.Joined("pool-1"), 1);
  fake.machines().SetReachable(true);
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-2"); }));
  EXPECT_TRUE(fake.Await([&] { return fake.engine().Troubles().empty(); }));
  EXPECT_EQ(fake.Joined("pool-1"), 1) << "it was there all the time";
}

TEST(ReconcilingEngine, AMachineThatEndedIsRequestedWhenItsNodeIsAskedForAgain) {
  FakeUnderTest fake;
  fake.engine().StartNode("pool-1");
  fake.engine().StartNode("pool-2");
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-1") && fake.Here("pool-2"); }));
  fake.machines().KillAt("pool-1");
  ASSERT_TRUE(fake.Await([&] {
    fake.engine().StartNode("pool-1");
    return fake.Joined("pool-1") == 2;
  }));
  EXPECT_EQ(fake.Joined("pool-2"), 1);
}

// It could ask for each machine for as long as a provider takes that does not answer.
TEST(ReconcilingEngine, AsksForNothingMoreOnceTheTimeOfItsEndIsOver) {
  FakeUnderTest fake;
  LookTimes no_time = kOften;
  no_time.stop_s = 0;
  fake.Crash();
  fake.Restart("10.0.0.1:1", no_time);
  for (const char* node : {"pool-1", "pool-2", "pool-3"}) fake.engine().StartNode(node);
  ASSERT_TRUE(fake.Await([&] { return fake.machines().Nodes().size() == 3; }));
  fake.engine().Stop();
  EXPECT_EQ(fake.machines().Nodes().size(), 3U) << "they are left";
}

TEST(ReconcilingEngine, TheNextOneTakesMachinesOverOnTheSameAddressAndElseReleasesThem) {
  FakeUnderTest fake;
  fake.engine().StartNode("pool-1");
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-1"); }));
  fake.Crash();
  fake.Restart();
  fake.engine().StartNode("pool-1");
  fake.engine().StartNode("pool-2");
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-2"); }));
  EXPECT_EQ(fake.Joined("pool-1"), 1);
  fake.Crash();
  fake.Restart("10.0.0.2:1");
  EXPECT_TRUE(fake.Await([&] { return fake.machines().Nodes().empty(); }));
}

TEST(ReconcilingEngine, TheMachinesThatItLeavesAreTheNextOnes) {
  FakeUnderTest fake;
  const ScratchFolder folder;
  std::unique_ptr<ReconcilingEngine> engine;
  const auto begin = [&] {
    auto directory = NodeDirectory::Open(folder.path());
    ASSERT_TRUE(directory.ok());
    engine = std::make_unique<ReconcilingEngine>(
        fake.machines().Provider(), NodeAgents{"tuner", {}}, *std::move(directory), kSoon, kOften);
    engine->Open("10.0.0.1:1", "");
    engine->StartNode("pool-1");
  };
  begin();
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-1"); }));
  engine->Leave();
  engine->StartNode("pool-2");
  engine.reset();
  EXPECT_THAT(fake.machines().Nodes(), ElementsAre(Pair("pool-1", 1)));
  begin();
  engine->StartNode("pool-3");
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-3"); }));
  EXPECT_THAT(fake.machines().Nodes(), ElementsAre(Pair("pool-1", 1), Pair("pool-3", 1)));
  EXPECT_EQ(fake.Joined("pool-1"), 1) << "it was there all the time";
  engine->Stop();
  EXPECT_THAT(fake.machines().Nodes(), IsEmpty());
}

// The list leaves it out: filtered, perhaps, by a setting of the user's.
TEST(MachineBook, TheMachineOfAnAgentThatHasJoinedIsNotLost) {
  for (const bool joined : {false, true}) {
    MachineBook book("pool", {.settle_s = 2}, [] { return std::string("1"); });
    book.Want("pool-1");
    const Time start{1'000'000};
    MachineBook::Steps steps = book.Look(start, {});
    ASSERT_EQ(steps.requests.size(), 1u);
    book.Requested(steps.requests[0].key, start, absl::OkStatus());
    if (joined) book.Joined("pool-1");
    steps = book.Look(After(start, 3), {});
    EXPECT_EQ(steps.lost.size(), joined ? 0u : 1u);
    EXPECT_EQ(steps.requests.size(), joined ? 0u : 1u);
  }
}

// As one does for a moment whose place is that of one that leaves.
TEST(MachineBook, WhyAMachineWaitsIsToldOnceItHasWaitedForAWhile) {
  MachineBook book("pool", {.wait_s = 15}, [] { return std::string("1"); });
  const Time start = Now();
  const auto reasons_after = [&](double s, const std::string& reason) {
    book.Look(After(start, s), {{.key = "pool.pool-1.1", .id = "a", .reason = reason}});
    return book.reasons();
  };
  book.Want("pool-1");
  EXPECT_EQ(book.Look(start, {}).requests.size(), 1u);
  EXPECT_THAT(reasons_after(1, "no GPU is free"), IsEmpty());
  EXPECT_THAT(reasons_after(15, "no GPU is free"), IsEmpty());
  EXPECT_THAT(reasons_after(16, "no GPU is free"), ElementsAre(Pair("pool-1", "no GPU is free")));
  EXPECT_THAT(reasons_after(17, "the image is missing"),
              ElementsAre(Pair("pool-1", "the image is missing")));
  EXPECT_THAT(reasons_after(18, ""), IsEmpty());
  EXPECT_THAT(reasons_after(19, "the image is missing"), IsEmpty()) << "it waits anew";
}

TEST(ReconcilingEngine, PeopleAreToldOfMachinesWhoseAgentsDoNotJoin) {
  FakeUnderTest fake;
  const ScratchFolder folder;
  auto directory = NodeDirectory::Open(folder.path());
  ASSERT_TRUE(directory.ok());
  MachineTimes soon = kSoon;
  soon.join_s = 0.05;
  ReconcilingEngine engine(fake.machines().Provider(), {"tuner", {}}, *std::move(directory), soon,
                           kOften);
  engine.NodeJoined("pool-1");  // of an earlier process
  engine.Open("10.0.0.1:1", "");
  for (const char* node : {"pool-1", "pool-2", "pool-3"}) engine.StartNode(node);
  engine.NodeJoined("pool-2");
  const auto told = ElementsAre(
      ::testing::AllOf(HasSubstr("engine: node pool-3 runs (machine "),
                       HasSubstr("), but its agent does not join: can it reach 10.0.0.1:1?"),
                       HasSubstr(folder.path() + "/pool-3/agent.log")));
  // On a busy machine it may be told of pool-2 as well, until the engine has heard that it has
  // joined.
  EXPECT_TRUE(fake.Await([&] { return ::testing::Value(engine.Troubles(), told); }))
      << ::testing::PrintToString(engine.Troubles());
  engine.NodeJoined("pool-3");
  EXPECT_TRUE(fake.Await([&] { return engine.Troubles().empty(); }));
  // A new node of that name is another one.
  engine.ReleaseNode("pool-3");
  ASSERT_TRUE(fake.Await([&] { return fake.machines().Nodes().size() == 2; }));
  engine.StartNode("pool-3");
  EXPECT_TRUE(fake.Await([&] { return !engine.Troubles().empty(); }));
  engine.Stop();
  EXPECT_THAT(engine.Troubles(), IsEmpty());
}

// Of other engines on the same provider.
TEST(ReconcilingEngine, TheMachinesOfOtherPoolsAreLeftAlone) {
  FakeUnderTest fake;
  fake.engine().StartNode("pool-1");
  ASSERT_TRUE(fake.Await([&] { return fake.Here("pool-1"); }));
  const ScratchFolder folder;
  auto directory = NodeDirectory::Open(folder.path());
  ASSERT_TRUE(directory.ok());
  ReconcilingEngine other(fake.machines().Provider(), {"tuner", {}}, *std::move(directory), kSoon,
                          kOften);
  other.Open("10.0.0.1:1", "");
  other.StartNode("pool-1");
  ASSERT_TRUE(fake.Await([&] { return fake.machines().Nodes().at("pool-1") == 2; }));
  other.Stop();
  EXPECT_THAT(fake.machines().Nodes(), ElementsAre(Pair("pool-1", 1)));
}

TEST(ReconcilingEngine, AgentsFindTheirTokenInAFileOfItsOwnersAndNotInTheirArguments) {
  CommandUnderTest command;
  const std::string token_file = command.folder().File("join.token");
  ASSERT_TRUE(WritePrivateFile(token_file, "secret-of-agents\n").ok());
  auto made = MakeEngine("command", {},
                         {.executable = command.Program(),
                          .arguments = {},
                          .directory = command.folder().File("others"),
                          .token_file = token_file},
                         {{"program", {ESPALIER_EXAMPLE_ENGINE, command.folder().File("more")}}});
  ASSERT_TRUE(made.ok()) << made.status();
  (*made)->Open("127.0.0.1:1", "");
  (*made)->StartNode("pool-1");
  const fs::path nodes = command.folder().File("others");
  ASSERT_TRUE(command.Await([&] { return fs::exists(nodes / "pool-1" / "here"); }));
  std::ifstream joined(nodes / "pool-1" / "joined");
  const std::string arguments(std::istreambuf_iterator<char>(joined), {});
  EXPECT_THAT(arguments, HasSubstr("--token-file " + (nodes / "join.token").string()));
  EXPECT_THAT(arguments, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(fs::status(nodes / "join.token").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  (*made)->Stop();
  EXPECT_FALSE(fs::exists(nodes / "pool-1" / "here"));
}

TEST(KubernetesEngine, TellsWhatIsWrongAndWhyPodsWait) {
  KubernetesUnderTest pods;
  pods.engine().StartNode("pool-1");
  ASSERT_TRUE(pods.Await([&] { return pods.Here("pool-1"); }));
  const auto told = [&](const std::string& text) {
    return pods.Await([&] {
      const std::vector<std::string> troubles = pods.engine().Troubles();
      return text.empty() ? troubles.empty()
                          : troubles == std::vector<std::string>{"engine: " + text};
    });
  };
  pods.kubernetes().SetFault("POST /pods", {.code = 403,
                                            .message = "pods is forbidden: User \"lab\" cannot "
                                                       "create resource \"pods\"",
                                            .reason = "Forbidden",
                                            .times = 1000});
  pods.engine().StartNode("pool-2");
  EXPECT_TRUE(
      told("no more nodes are to be had: pods is forbidden: User \"lab\" cannot create "
           "resource \"pods\""));
  pods.kubernetes().SetFault("POST /pods", {.times = 0});
  ASSERT_TRUE(pods.Await([&] { return pods.Here("pool-2"); })) << "it is tried again";
  EXPECT_TRUE(told(""));
  pods.kubernetes().SetStatus("pool-2", R"({"phase": "Pending", "containerStatuses": [
      {"name": "agent", "image": "torch:2", "state": {"waiting": {"reason": "ErrImagePull"}}}]})");
  pods.engine().StartNode("pool-2");  // it looks
  EXPECT_TRUE(told("nodes wait: image \"torch:2\" cannot be pulled"));
  EXPECT_EQ(pods.Joined("pool-1"), 1);
}

// What a program that is no engine does is told in one line.
TEST(CommandEngine, NamesWhatIsWrongWithItsProgram) {
  const auto trouble = [](const std::string& script, double limit_s = 60) {
    const ScratchFolder folder;
    auto made = MakeEngine("command", {{"limit_s", limit_s}},
                           {.executable = "tuner", .arguments = {}, .directory = folder.path()},
                           {{"program", {"/bin/sh", "-c", script}}});
    EXPECT_TRUE(made.ok()) << made.status();
    (*made)->Open("127.0.0.1:1", "");
    (*made)->StartNode("pool-1");
    EXPECT_TRUE(AwaitProcesses([&] { return !(*made)->Troubles().empty(); }));
    return (*made)->Troubles().front();
  };
  EXPECT_THAT(trouble("echo it burns >&2; exit 3"), HasSubstr("list: it burns"));
  EXPECT_THAT(trouble("exit 3"), HasSubstr("\"/bin/sh\" ended with exit code 3"));
  EXPECT_THAT(trouble("echo hello"), HasSubstr("answers hello: want one JSON object a line"));
  EXPECT_THAT(trouble("echo '{\"key\": \"a\", \"id\": \"b\"}'"), HasSubstr("want \"state\""));
  EXPECT_THAT(trouble("sleep 600", 0.3), HasSubstr("has not ended within 0.3 s"));
}

}  // namespace
}  // namespace espalier
