#include "tuner/server/loop.h"

#include <atomic>
#include <future>
#include <latch>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "search_spaces/search_space.h"

namespace espalier {
namespace {

StudySpec Spec(const std::string& name) {
  StudySpec spec;
  spec.name = name;
  spec.space = *SearchSpace::FromJson(R"({"lr": {"_type": "uniform", "_value": [0.1, 0.2]}})");
  spec.sampler = {"random", {}};
  spec.command = {"/bin/true"};
  spec.directory = "/tmp";
  return spec;
}

// What a test sees of the storage that the loop owns.
struct Journal {
  std::atomic<int> commits = 0;
  std::atomic<bool> fails = false;
  std::atomic<int> studies = 0;  // committed
  std::atomic<int> left_to_clean_up = 0;
  // Set: the next commit says that it has begun, and waits to be let go.
  std::atomic<std::promise<void>*> began = nullptr;
  std::promise<void> let_go;
};

class JournalStorage final : public Storage {
 public:
  explicit JournalStorage(Journal& journal) : journal_(journal) {}
  absl::StatusOr<TunerState> Load() override { return TunerState{}; }
  absl::Status Commit(std::span<const Change> changes) override {
    if (auto* began = journal_.began.exchange(nullptr)) {
      began->set_value();
      journal_.let_go.get_future().wait();
    }
    if (journal_.fails) return absl::DataLossError("disk full");
    ++journal_.commits;
    for (const Change& change : changes) {
      if (std::holds_alternative<StudyCreated>(change)) ++journal_.studies;
    }
    return absl::OkStatus();
  }
  absl::Status CommitSlices(const NextSlice&) override { return absl::OkStatus(); }
  absl::StatusOr<bool> CleanUp() override { return journal_.left_to_clean_up-- > 1; }

 private:
  Journal& journal_;
};

class LoopTest : public testing::Test {
 protected:
  LoopTest() { Restart(); }

  void Restart() {
    LoopOptions options;
    options.clock = [this] { return Time{now_us_}; };
    options.terminate = [this] { ++terminated_; };
    options.core.pool_size = pool_size_;
    options.committed = [this](const std::vector<Change>& changes, const TunerState&) {
      committed_ += static_cast<int>(changes.size());
    };
    options.ask_engine = [this](const NodeRequest& request) {
      studies_at_ask_ = journal_.studies.load();
      asked_ += request.start ? 1 : 0;
    };
    loop_ = std::make_unique<Loop>(std::make_unique<JournalStorage>(journal_), TunerState{},
                                   options, metrics_,
                                   [this](const std::vector<Command>& commands, const TunerState&) {
                                     commits_at_send_ = journal_.commits.load();
                                     sent_ += static_cast<int>(commands.size());
                                   });
  }

  // A trial that its client runs, on a pool of one slot.
  TrialId Trial() {
    StudySpec spec = Spec("clients");
    spec.ask_and_tell = true;
    const StudyId study = loop_->Post(CreateStudy{spec, true}).study;
    loop_->Post(AgentHello{"node", 1, {}});
    return loop_->Post(CreateTrial{study, nullptr}).trial;
  }
  std::future<Reply> Ask(TrialId trial, double wait_s) {
    auto answered = std::make_shared<std::promise<Reply>>();
    loop_->PostThen(AcquireSlots{trial, 1, "", wait_s},
                    [answered](const Reply& reply) { answered->set_value(reply); });
    return answered->get_future();
  }

  Journal journal_;
  Metrics metrics_;
  std::atomic<std::int64_t> now_us_ = 1'000'000'000;
  std::atomic<int> terminated_ = 0;
  std::atomic<int> sent_ = 0;
  std::atomic<int> commits_at_send_ = 0;
  std::atomic<int> committed_ = 0;
  std::atomic<int> asked_ = 0;  // nodes, of an engine
  std::atomic<int> studies_at_ask_ = 0;
  std::optional<PoolSizeOptions> pool_size_;
  std::unique_ptr<Loop> loop_;
};

TEST_F(LoopTest, WhoWaitsForSlotsIsAnsweredWhenTheyAreDurablyItsOwn) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  EXPECT_EQ(Ask(first, 30).get().slots.size(), 1u);
  std::future<Reply> once = Ask(second, 30);
  std::future<Reply> again = Ask(second, 30);
  const int commits = journal_.commits;
  loop_->Post(ReleaseSlots{first});
  EXPECT_EQ(once.get().slots.size(), 1u);
  EXPECT_EQ(again.get().slots.size(), 1u) << "all who ask for the trial";
  EXPECT_GT(journal_.commits, commits);
}

TEST_F(LoopTest, AWaitForSlotsEndsInTime) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  Ask(first, 0).get();
  std::future<Reply> waits = Ask(second, 10);
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());  // it has been heard
  now_us_ += 11'000'000;
  loop_->Post(Tick{});
  const Reply reply = waits.get();
  EXPECT_TRUE(reply.status.ok());
  EXPECT_TRUE(reply.slots.empty());
  EXPECT_FALSE(reply.waits_for.empty());
}

TEST_F(LoopTest, NobodyWaitsForSlotsOfAServiceThatEnds) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  Ask(first, 0).get();
  std::future<Reply> waits = Ask(second, 30);
  loop_->EndWaits();
  EXPECT_TRUE(absl::IsUnavailable(waits.get().status));
  EXPECT_TRUE(absl::IsUnavailable(Ask(second, 30).get().status));
  EXPECT_TRUE(loop_->Post(RenewSlots{first}).status.ok()) << "others are served to the end";
}

TEST_F(LoopTest, WhoWaitsForSlotsHearsOfAFailedCommit) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  Ask(first, 0).get();
  std::future<Reply> waits = Ask(second, 30);
  journal_.fails = true;
  loop_->Post(ReleaseSlots{first});
  EXPECT_TRUE(absl::IsUnavailable(waits.get().status));
}

TEST_F(LoopTest, CommitsManyPostsTogether) {
  constexpr int kThreads = 16;
  std::promise<void> began;
  journal_.began = &began;
  std::thread first([this] { EXPECT_TRUE(loop_->Post(CreateStudy{Spec("first")}).status.ok()); });
  began.get_future().wait();
  // The owner is inside a commit: what is posted now waits and goes into the next one together.
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      EXPECT_TRUE(loop_->Post(CreateStudy{Spec(absl::StrCat("s", i))}).status.ok());
    });
  }
  while (loop_->queued() < kThreads) std::this_thread::yield();
  journal_.let_go.set_value();
  first.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(journal_.studies, kThreads + 1);
  EXPECT_EQ(journal_.commits, 2);
}

TEST_F(LoopTest, AnswersOnlyAfterTheCommit) {
  std::promise<void> began;
  journal_.began = &began;
  std::atomic<bool> answered = false;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, [&](const Reply& reply) {
    EXPECT_TRUE(reply.status.ok());
    EXPECT_EQ(journal_.studies, 1);
    answered = true;
  });
  began.get_future().wait();
  EXPECT_FALSE(answered);
  journal_.let_go.set_value();
  ASSERT_TRUE(
      loop_->Read([](const View& view) { EXPECT_EQ(view.core.state().studies.size(), 1u); }).ok());
  EXPECT_TRUE(answered);
}

TEST_F(LoopTest, TellsWhatIsCommittedBeforeItAnswers) {
  committed_ = 0;
  loop_->Post(CreateStudy{Spec("a")});
  EXPECT_GT(committed_, 0);
  journal_.fails = true;
  committed_ = 0;
  loop_->Post(CreateStudy{Spec("b")});
  EXPECT_EQ(committed_, 0);
}

TEST_F(LoopTest, SendsCommandsAfterTheirChangesAreCommitted) {
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("a")}).status.ok());
  const int before = journal_.commits;
  ASSERT_TRUE(loop_->Post(AgentHello{"oak", 1, {}}).status.ok());
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  EXPECT_EQ(sent_, 1);
  EXPECT_GT(commits_at_send_, before);
}

TEST_F(LoopTest, AsksTheEngineAfterTheCommitAndOnlyThen) {
  pool_size_.emplace();
  Restart();
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  now_us_ += 10'000'000;  // to the next look at the pool's size
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("a")}).status.ok());
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(studies_at_ask_, 1);
  Restart();
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  now_us_ += 10'000'000;
  journal_.fails = true;
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(CreateStudy{Spec("lost")}).status));
  loop_->Stop();
  EXPECT_EQ(asked_, 1) << "nobody comes for a study that is not on record";
}

TEST_F(LoopTest, CleansUpAfterADeletionWhileItGoesOnAnswering) {
  const Reply created = loop_->Post(CreateStudy{Spec("a")});
  ASSERT_TRUE(loop_->Post(StopStudy{"a"}).status.ok());
  journal_.left_to_clean_up = 100;
  ASSERT_TRUE(loop_->Post(DeleteStudy{created.study}).status.ok());
  // Each answer is one turn of the loop, and each turn cleans up once.
  for (int turn = 0; turn < 100; ++turn) ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  loop_->Stop();
  EXPECT_EQ(journal_.left_to_clean_up, 0) << "and no more often than there is something left";
}

TEST_F(LoopTest, CleansUpWhatTheServiceBeforeLeft) {
  loop_->Stop();
  journal_.left_to_clean_up = 3;
  Restart();
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  loop_->Stop();
  EXPECT_EQ(journal_.left_to_clean_up, 0);
}

TEST_F(LoopTest, AFailedCommitAnswersUnavailableAndEndsTheProcess) {
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("kept")}).status.ok());
  journal_.fails = true;
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(CreateStudy{Spec("lost")}).status));
  // Nothing is shown or promised afterwards, not even what a later commit could write.
  journal_.fails = false;
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(CreateStudy{Spec("later")}).status));
  EXPECT_TRUE(absl::IsUnavailable(loop_->Read([](const View&) { ADD_FAILURE(); })));
  loop_->Stop();
  EXPECT_EQ(terminated_, 1);
  EXPECT_EQ(journal_.studies, 1);
}

TEST_F(LoopTest, AFailedCommitSendsNoCommands) {
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("a")}).status.ok());
  journal_.fails = true;
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(AgentHello{"oak", 1, {}}).status));
  loop_->Stop();
  EXPECT_EQ(sent_, 0);
}

TEST_F(LoopTest, StopFinishesWhatIsQueuedAndRefusesTheRest) {
  std::promise<void> began;
  journal_.began = &began;
  std::promise<absl::Status> second;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, nullptr);
  began.get_future().wait();
  loop_->PostAsync({CreateStudy{Spec("b")}, {}},
                   [&second](const Reply& reply) { second.set_value(reply.status); });
  std::thread stop([this] { loop_->Stop(); });
  journal_.let_go.set_value();
  EXPECT_TRUE(second.get_future().get().ok());
  stop.join();
  EXPECT_EQ(journal_.studies, 2);
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(CreateStudy{Spec("c")}).status));
}

TEST_F(LoopTest, PostingWaitsWhileTheQueueIsFull) {
  std::promise<void> began;
  journal_.began = &began;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, nullptr);
  began.get_future().wait();
  std::atomic<std::size_t> answered = 0;
  std::thread poster([&] {
    for (std::size_t i = 0; i < kMaxQueue + 1; ++i) {
      loop_->PostAsync({Event{Tick{}}, {}}, [&answered](const Reply&) { ++answered; });
    }
  });
  while (loop_->queued() < kMaxQueue) std::this_thread::yield();
  EXPECT_EQ(loop_->queued(), kMaxQueue);
  journal_.let_go.set_value();
  poster.join();
  loop_->Stop();
  EXPECT_EQ(answered, kMaxQueue + 1);
}

TEST_F(LoopTest, TicksWhenTheCoresDeadlineHasPassed) {
  StudySpec spec = Spec("short");
  spec.time_limit_s = 5;
  ASSERT_TRUE(loop_->Post(CreateStudy{spec}).status.ok());
  now_us_ += 6'000'000;
  StudyState state = StudyState::kRunning;
  // A read wakes the loop, which then looks at the clock.
  while (state == StudyState::kRunning) {
    ASSERT_TRUE(loop_
                    ->Read([&state](const View& view) {
                      state = view.core.state().FindStudy("short")->state;
                    })
                    .ok());
  }
  EXPECT_EQ(state, StudyState::kComplete);
}

TEST_F(LoopTest, KnowsThePidsOfReplicasUntilTheyExit) {
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("a")}).status.ok());
  ASSERT_TRUE(loop_->Post(AgentHello{"oak", 1, {}}).status.ok());
  loop_->PostAsync({ReplicaStarted{ReplicaId(1)}, {{ReplicaId(1), 4711}}}, nullptr);
  ASSERT_TRUE(loop_
                  ->Read([](const View& view) {
                    ASSERT_TRUE(view.pids.contains(ReplicaId(1)));
                    EXPECT_EQ(view.pids.at(ReplicaId(1)), 4711);
                  })
                  .ok());
  loop_->PostAsync({ReplicaExited{ReplicaId(1), 1, 0, "", ""}, {}}, nullptr);
  ASSERT_TRUE(loop_->Read([](const View& view) { EXPECT_TRUE(view.pids.empty()); }).ok());
}

}  // namespace
}  // namespace espalier
