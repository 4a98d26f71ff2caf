// What others hand to the owner's thread may throw.

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/check_scope.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "search_spaces/search_space.h"
#include "tuner/server/loop/aside_thread.h"
#include "tuner/server/loop/loop.h"

namespace espalier {
namespace {

class GuardedLoop : public testing::Test {
 protected:
  GuardedLoop() { Restart(); }
  // Functions of loops hold what follows.
  ~GuardedLoop() override { loop_.reset(); }

  void Restart() {
    LoopOptions options;
    options.clock = [this] {
      if (CheckScope::Text() == "what follows from the events") ThrowIf(ThrowsIn::kSettle);
      return Now();
    };
    options.failed = [this](const std::string& why) {
      why_ = why;
      throw std::runtime_error("no terminal");
    };
    options.terminate = [this](int exit_code) {
      ++terminated_;
      exit_code_ = exit_code;
    };
    options.committed = [this](const std::vector<Change>&, const TunerState&) {
      // Still waits at the end.
      ++commits_;
      if (throws_in_ == ThrowsIn::kCommitted) loop_->ReadThen(Throws);
      ThrowIf(ThrowsIn::kCommitted);
    };
    options.disk_troubles = [this]() -> std::vector<std::string> {
      ThrowIf(ThrowsIn::kTroubles);
      return {"the disk is full"};
    };
    loop_ = std::make_unique<Loop>(
        MakeMemoryStorage(), TunerState{}, options, metrics_,
        [this](const std::vector<Command>&, const TunerState&) { ThrowIf(ThrowsIn::kSend); });
  }

  CreateStudy Study(const std::string& name, StudyKind kind = StudyKind::kTuned) {
    StudySpec spec;
    spec.name = name;
    spec.kind = kind;
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.sampler = {"random", {}};
    spec.command = {"/bin/true"};
    spec.directory = "/tmp";
    return {spec, true};
  }
  AcquireSlots Slot(StudyId study) {
    return {loop_->Post(CreateTrial{study, nullptr}).trial(), 1, "", 60};
  }

  static void Throws(const View*) { throw std::out_of_range("whatever it sees"); }

  enum class ThrowsIn { kNothing, kSettle, kCommitted, kSend, kTroubles };
  void ThrowIf(ThrowsIn where) const {
    if (throws_in_ == where) throw std::out_of_range("no such field");
  }

  std::atomic<ThrowsIn> throws_in_ = ThrowsIn::kNothing;
  std::atomic<int> terminated_ = 0;
  std::atomic<int> exit_code_ = 0;
  std::atomic<int> commits_ = 0;
  std::string why_;  // of the end; read after Stop
  Metrics metrics_;
  std::unique_ptr<Loop> loop_;
};

// Its caller is told so, in the same way.
std::function<void(const Reply&)> Failing(std::promise<absl::Status>& told) {
  return [&told](const Reply& reply) {
    if (!absl::IsInternal(reply.status)) throw std::out_of_range("no such field");
    told.set_value(reply.status);
  };
}

TEST_F(GuardedLoop, AnAnswerThatFailsEndsThatCallAlone) {
  std::promise<absl::Status> at_once;
  loop_->PostThen(Study("a", StudyKind::kByClients), Failing(at_once));
  EXPECT_TRUE(absl::IsInternal(at_once.get_future().get()));
  loop_->PostThen(Study("b", StudyKind::kByClients),
                  [](const Reply&) { throw std::out_of_range("whatever it says"); });
  // One that comes late: the second waits for the slot of the first.
  const StudyId study = loop_->Post(Study("clients", StudyKind::kByClients)).study();
  loop_->Post(AgentHello{"oak", 1, {}});
  const AcquireSlots first = Slot(study);
  EXPECT_TRUE(loop_->Post(first).status.ok());
  std::promise<absl::Status> late;
  loop_->PostThen(Slot(study), Failing(late));
  EXPECT_TRUE(loop_->Post(ReleaseSlots{first.trial}).status.ok());
  EXPECT_TRUE(absl::IsInternal(late.get_future().get()));
  // And one that the service's end brings.
  std::promise<absl::Status> at_the_end;
  loop_->PostThen(Slot(study), Failing(at_the_end));
  loop_->EndWaits();
  EXPECT_TRUE(absl::IsInternal(at_the_end.get_future().get()));
  EXPECT_TRUE(loop_->Post(Study("c", StudyKind::kByClients)).status.ok());
  EXPECT_EQ(terminated_, 0);
}

TEST_F(GuardedLoop, ALookThatFailsIsToldSoAndWarningsThatFailAreLeftOut) {
  EXPECT_TRUE(absl::IsInternal(loop_->Read([](const View&) { throw std::out_of_range("at"); })));
  std::promise<bool> nothing;
  loop_->ReadThen([&nothing](const View* view) {
    if (view != nullptr) throw std::out_of_range("at");
    nothing.set_value(true);
  });
  EXPECT_TRUE(nothing.get_future().get());
  loop_->ReadThen(Throws);
  std::size_t warnings = 0;
  const auto count = [&](const View& view) { warnings = view.disk_troubles.size(); };
  EXPECT_TRUE(loop_->Read(count).ok());
  EXPECT_EQ(warnings, 1u);
  throws_in_ = ThrowsIn::kTroubles;
  EXPECT_TRUE(loop_->Read(count).ok());
  EXPECT_EQ(warnings, 0u);
}

// Who keeps up with the state would be behind it for ever.
TEST_F(GuardedLoop, WhatThrowsAfterACommitEndsTheProcess) {
  for (const ThrowsIn where : {ThrowsIn::kCommitted, ThrowsIn::kSend}) {
    terminated_ = 0;
    throws_in_ = ThrowsIn::kNothing;
    Restart();
    ASSERT_TRUE(loop_->Post(Study("a")).status.ok());
    throws_in_ = where;
    const Reply reply = loop_->Post(AgentHello{"oak", 1, {}});
    EXPECT_EQ(reply.status.ok(), where == ThrowsIn::kSend) << reply.status;
    EXPECT_TRUE(absl::IsUnavailable(loop_->Post(Study("later")).status));
    loop_->Stop();
    EXPECT_EQ(terminated_, 1);
    EXPECT_EQ(exit_code_, kStepFailedExitCode);
    EXPECT_THAT(why_, testing::HasSubstr("an error of its own"));
  }
}

// What its event has changed already is half a step: none of it is stored or answered.
TEST_F(GuardedLoop, WhatThrowsInWhatFollowsFromEventsEndsTheProcessBeforeACommit) {
  ASSERT_TRUE(loop_->Post(Study("a")).status.ok());
  const int commits = commits_;
  throws_in_ = ThrowsIn::kSettle;
  EXPECT_FALSE(loop_->Post(Study("b")).status.ok());
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(Study("later")).status));
  loop_->Stop();
  EXPECT_EQ(commits_, commits);
  EXPECT_EQ(terminated_, 1);
  EXPECT_EQ(exit_code_, kStepFailedExitCode);
  EXPECT_THAT(why_, testing::HasSubstr("an error of its own"));
}

TEST(AsideThread, WhatThrowsIsToldByItsNameAndTheNextIsDone) {
  std::promise<std::string> failed;
  std::promise<void> done;
  AsideThread aside([&failed](const std::string& what) { failed.set_value(what); });
  aside.Do({[] { return std::string("plan 1"); },
            [](const std::stop_token&) { throw std::runtime_error("no memory"); }});
  aside.Do({[] { return std::string("plan 2"); },
            [&done](const std::stop_token&) { done.set_value(); }});
  EXPECT_EQ(failed.get_future().get(), "plan 1: no memory");
  done.get_future().wait();
}

}  // namespace
}  // namespace espalier
