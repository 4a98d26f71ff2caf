#include "tuner/server/loop/loop.h"

#include <atomic>
#include <future>
#include <latch>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/server/loop/journal_storage.h"

namespace espalier {
namespace {

class LoopTest : public testing::Test {
 protected:
  LoopTest() { Restart(); }

  // On what was stored, if that is given.
  void Restart(TunerState state = {}) {
    LoopOptions options;
    options.clock = [this] {
      if (clock_good_for_ > 0 && --clock_good_for_ == 0) {
        throw std::runtime_error("the clock is broken");
      }
      return Time{now_us_};
    };
    options.max_batch_s = max_batch_s_;
    options.failed = [this](const std::string& why) {
      EXPECT_EQ(terminated_, 0) << "said before the end";
      why_ = why;
    };
    options.terminate = [this](int exit_code) {
      ++terminated_;
      exit_code_ = exit_code;
    };
    options.core.pool_size = pool_size_;
    options.core.plan_aside = plan_aside_;
    options.committed = [this](const std::vector<Change>& changes, const TunerState&) {
      committed_ += static_cast<int>(changes.size());
    };
    options.ask_engine = [this](const NodeRequest& request) {
      studies_at_ask_ = journal_.studies.load();
      asked_ += request.start ? 1 : 0;
    };
    options.tell_engine_joined = [](const std::string&) {};
    loop_ = std::make_unique<Loop>(std::make_unique<JournalStorage>(journal_), std::move(state),
                                   options, metrics_,
                                   [this](const std::vector<Command>& commands, const TunerState&) {
                                     commits_at_send_ = journal_.commits.load();
                                     sent_ += static_cast<int>(commands.size());
                                   });
  }

  // A trial that its client runs, on a pool of one slot.
  TrialId Trial() {
    StudySpec spec = Spec("clients");
    spec.kind = StudyKind::kByClients;
    const StudyId study = loop_->Post(CreateStudy{spec, true}).study();
    loop_->Post(AgentHello{"node", 1, {}});
    return loop_->Post(CreateTrial{study, nullptr}).trial();
  }
  // What an agent says: returns when it is durable.
  void Hear(FromAgent said) {
    std::promise<void> durable;
    loop_->PostAsync(std::move(said), [&durable](const Reply&) { durable.set_value(); });
    durable.get_future().wait();
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
  std::atomic<int> exit_code_ = 0;
  std::string why_;  // of the end; read after Stop
  std::atomic<int> sent_ = 0;
  std::atomic<int> commits_at_send_ = 0;
  std::atomic<int> committed_ = 0;
  std::atomic<int> asked_ = 0;  // nodes, of an engine
  std::atomic<int> studies_at_ask_ = 0;
  std::optional<PoolSizeOptions> pool_size_;
  double max_batch_s_ = 1e9;
  bool plan_aside_ = false;
  std::atomic<int> clock_good_for_ = 0;  // the call of this number throws; 0: none
  std::unique_ptr<Loop> loop_;
};

TEST_F(LoopTest, WhoWaitsForSlotsIsAnsweredWhenTheyAreDurablyItsOwn) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  EXPECT_EQ(Ask(first, 30).get().slots().size(), 1u);
  std::future<Reply> once = Ask(second, 30);
  std::future<Reply> again = Ask(second, 30);
  const int commits = journal_.commits;
  loop_->Post(ReleaseSlots{first});
  EXPECT_EQ(once.get().slots().size(), 1u);
  EXPECT_EQ(again.get().slots().size(), 1u) << "all who ask for the trial";
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
  EXPECT_TRUE(reply.slots().empty());
  EXPECT_FALSE(reply.waits_for().empty());
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

TEST_F(LoopTest, OnlyTheOwnersThreadAnswersWhoWaitsForSlotsOfABrokenLoop) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  Ask(first, 0).get();
  std::promise<std::thread::id> answered;
  loop_->PostThen(AcquireSlots{second, 1, "", 30},
                  [&](const Reply&) { answered.set_value(std::this_thread::get_id()); });
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());  // it has been heard
  journal_.fails = true;
  std::thread::id owner;
  loop_->PostThen(ReleaseSlots{first}, [&](const Reply&) {
    owner = std::this_thread::get_id();
    std::thread([this] { loop_->EndWaits(); }).join();
  });
  EXPECT_EQ(answered.get_future().get(), owner);
}

TEST_F(LoopTest, WhoAsksForSlotsAgainWaitsThoughTheFirstRequestWasGivenUp) {
  const TrialId first = Trial();
  const TrialId second = Trial();
  Ask(first, 0).get();
  std::future<Reply> once = Ask(second, 30);
  std::promise<void> began;
  journal_.began = &began;
  std::thread busy([this] { loop_->Post(CreateTrial{StudyId(1), nullptr}); });
  began.get_future().wait();
  // These go into one batch.
  loop_->PostThen(ReleaseSlots{second}, [](const Reply&) {});
  std::future<Reply> again = Ask(second, 30);
  journal_.let_go.set_value();
  busy.join();
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  loop_->Post(ReleaseSlots{first});
  EXPECT_EQ(again.get().slots().size(), 1u);
  EXPECT_EQ(once.get().slots().size(), 1u);
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

TEST_F(LoopTest, PlansAreMadeBesideTheOwnerAndCarriedOut) {
  plan_aside_ = true;
  Restart();
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("a")}).status.ok());
  ASSERT_TRUE(loop_->Post(AgentHello{"oak", 1, {}}).status.ok());
  while (sent_ == 0) {
    now_us_ += 1'000'000;
    ASSERT_TRUE(loop_->Post(Tick{}).status.ok());
  }
  EXPECT_EQ(sent_, 1);
}

// This one would take seconds, and is given up with the loop.
TEST_F(LoopTest, ALongDrawHoldsUpNobodyElse) {
  constexpr int kParameters = 256, kBefore = 100;
  plan_aside_ = true;
  Restart();
  StudySpec spec = Spec("clients");
  std::string space = R"({"p0": {"_type": "uniform", "_value": [0, 1]})";
  for (int i = 1; i < kParameters; ++i) {
    absl::StrAppend(&space, R"(, "p)", i, R"(": {"_type": "uniform", "_value": [0, 1]})");
  }
  spec.space = *SearchSpace::FromJson(space + "}");
  spec.kind = StudyKind::kByClients;
  spec.sampler = {"tpe", {{"candidates", 10'000}, {"startup_trials", kBefore}}};
  ASSERT_TRUE(loop_->Post(CreateStudy{spec, true}).status.ok());
  for (int i = 0; i < kBefore; ++i) {
    const TrialId trial = loop_->Post(AskTrial{"clients", {}, {}}).trial();
    ASSERT_TRUE(loop_->Post(TellEnd{trial, TrialState::kComplete, {i * 0.5}}).status.ok());
  }
  std::promise<Reply> answered;
  std::future<Reply> reply = answered.get_future();
  loop_->PostThen(AskTrial{"clients", {}, {}}, [&](const Reply& r) { answered.set_value(r); });
  ASSERT_TRUE(loop_->Post(CreateStudy{Spec("b")}).status.ok());
  EXPECT_EQ(reply.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  loop_->Stop();
  EXPECT_EQ(reply.get().status.code(), absl::StatusCode::kUnavailable);
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
  ASSERT_TRUE(loop_->Post(DeleteStudy{created.study()}).status.ok());
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
  EXPECT_EQ(exit_code_, kCommitFailedExitCode);
  EXPECT_THAT(why_, testing::HasSubstr("disk"));
  EXPECT_EQ(journal_.studies, 1);
}

TEST_F(LoopTest, ADatabaseThatIsLostEndsTheProcessThoughNothingIsWritten) {
  // Once it has taken up the second, it has looked after the first.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  journal_.lost = true;
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok()) << "it has looked just now";
  now_us_ += static_cast<std::int64_t>(kStorageLook_s * 1e6);
  // A read wakes the loop, which then looks at the clock.
  while (loop_->Read([](const View&) {}).ok()) {
  }
  loop_->Stop();
  EXPECT_EQ(terminated_, 1);
  EXPECT_EQ(exit_code_, kCommitFailedExitCode);
  EXPECT_THAT(why_, testing::HasSubstr("file removed"));
}

TEST_F(LoopTest, WarnsOnceOfANodeThatOthersDoNotReach) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  for (const char* name : {"near", "far"}) {
    ASSERT_TRUE(loop_->Post(AgentHello{name, 1, {}}).status.ok());
  }
  const auto reached_at = [this](const std::string& node, const std::string& host) {
    Hear({std::nullopt, NodeHost{node, host}});
  };
  reached_at("near", "127.0.0.1");
  ASSERT_TRUE(loop_
                  ->Read([&](const View& view) {
                    EXPECT_EQ(view.hosts.at("near"), "127.0.0.1");
                    EXPECT_EQ(log.str(), "") << "a pool of one machine, as far as is known";
                  })
                  .ok());
  reached_at("far", "10.0.0.2");
  reached_at("near", "127.0.0.1");
  loop_->Stop();
  spdlog::set_default_logger(before);
  const std::string said = log.str();
  const std::size_t first = said.find("event=pool_warning");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("event=pool_warning", first + 1), std::string::npos);
  EXPECT_THAT(said, testing::HasSubstr("replicas of node near are reached at 127.0.0.1"));
}

// What was stepped before it in the same batch has not been answered, and is not committed either.
TEST_F(LoopTest, AnExceptionInAStepNamesItsEventAndEndsTheProcess) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  std::promise<void> began;
  journal_.began = &began;
  auto kept = std::async(std::launch::async, [&] { return loop_->Post(CreateStudy{Spec("a")}); });
  began.get_future().wait();
  std::vector<std::promise<Reply>> batch(8);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    loop_->PostThen(CreateStudy{Spec(absl::StrCat("b", i))},
                    [&answered = batch[i]](const Reply& reply) { answered.set_value(reply); });
  }
  // Whether the owner looks at the clock once or thrice before their steps.
  clock_good_for_ = 6;
  journal_.let_go.set_value();
  EXPECT_TRUE(kept.get().status.ok());
  for (std::promise<Reply>& answered : batch) {
    const Reply reply = answered.get_future().get();
    EXPECT_TRUE(absl::IsUnavailable(reply.status)) << reply.status;
    EXPECT_THAT(std::string(reply.status.message()), testing::HasSubstr("an error of its own"));
  }
  EXPECT_TRUE(absl::IsUnavailable(loop_->Post(CreateStudy{Spec("later")}).status));
  loop_->Stop();
  spdlog::set_default_logger(before);
  EXPECT_EQ(terminated_, 1);
  EXPECT_EQ(exit_code_, kStepFailedExitCode);
  EXPECT_THAT(why_, testing::HasSubstr("an error of its own"));
  EXPECT_EQ(journal_.studies, 1) << "what was committed before";
  EXPECT_THAT(log.str(), testing::HasSubstr("event=step_failed in=\"CreateStudy study=\"b"));
  EXPECT_THAT(log.str(), testing::HasSubstr(": the clock is broken\""));
}

TEST_F(LoopTest, ALookThatFailsIsAnsweredAndOthersSeeOn) {
  const absl::Status status =
      loop_->Read([](const View&) { throw std::runtime_error("bad text"); });
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  std::promise<bool> nothing;
  loop_->ReadThen([&nothing](const View* view) {
    if (view != nullptr) throw std::out_of_range("substr");
    nothing.set_value(true);
  });
  EXPECT_TRUE(nothing.get_future().get());
  bool seen = false;
  EXPECT_TRUE(loop_->Read([&seen](const View&) { seen = true; }).ok());
  EXPECT_TRUE(seen);
}

TEST_F(LoopTest, ACheckThatFailsInAStepNamesItsEvent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        // A study that calls itself otherwise than the state does.
        Study study;
        study.id = StudyId(8);
        study.spec = Spec("torn");
        study.spec.kind = StudyKind::kByClients;
        TunerState state;
        state.study_ids.emplace("torn", StudyId(7));
        state.studies.emplace(StudyId(7), study);
        state.last_study = StudyId(8);
        Restart(std::move(state));
        loop_->Post(CreateTrial{StudyId(7), nullptr});
      },
      "a study id that the core itself holds\n.*while at CreateTrial study=7");
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
  Hear({ReplicaStarted{ReplicaId(1)}, ReplicaPid{ReplicaId(1), 4711}});
  ASSERT_TRUE(loop_
                  ->Read([](const View& view) {
                    ASSERT_TRUE(view.pids.contains(ReplicaId(1)));
                    EXPECT_EQ(view.pids.at(ReplicaId(1)), 4711);
                  })
                  .ok());
  Hear({ReplicaExited{ReplicaId(1), 1, 0, "", ""}, {}});
  ASSERT_TRUE(loop_->Read([](const View& view) { EXPECT_TRUE(view.pids.empty()); }).ok());
}

}  // namespace
}  // namespace espalier
