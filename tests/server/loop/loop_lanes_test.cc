// In what order the loop serves clients and others, and how many may wait.

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/loop/journal_storage.h"
#include "tuner/api/masking_tuner.h"
#include "tuner/server/loop/loop.h"

namespace espalier {
namespace {

using testing::ElementsAre;

TEST(TwoLanes, EachLaneIsServedInOrderAndTheyTakeTurns) {
  TwoLanes<int> lanes;
  EXPECT_EQ(lanes.TakeTurn(), std::nullopt);
  for (int item : {1, 2, 3}) {
    ASSERT_TRUE(lanes.Put(item, QueueLane::kOthers, TwoLanes<int>::IfFull::kPass).ok());
  }
  EXPECT_EQ(lanes.TakeTurn(), QueueLane::kOthers) << "nobody else waits";
  EXPECT_EQ(lanes.Take(QueueLane::kOthers), 1);
  for (int item : {4, 5}) {
    ASSERT_TRUE(lanes.Put(item, QueueLane::kClients, TwoLanes<int>::IfFull::kWait).ok());
  }
  std::vector<int> taken;
  while (const std::optional<QueueLane> turn = lanes.TakeTurn())
    taken.push_back(*lanes.Take(*turn));
  EXPECT_THAT(taken, ElementsAre(4, 2, 5, 3));
  EXPECT_EQ(lanes.Take(QueueLane::kClients), std::nullopt);
}

TEST(TwoLanes, StopsWithWhatItHasAndCloseHandsItOver) {
  TwoLanes<int> lanes;
  int item = 1;
  ASSERT_TRUE(lanes.Put(item, QueueLane::kOthers, TwoLanes<int>::IfFull::kPass).ok());
  item = 2;
  ASSERT_TRUE(lanes.Put(item, QueueLane::kClients, TwoLanes<int>::IfFull::kPass).ok());
  EXPECT_FALSE(lanes.Await(1e9));
  lanes.Stop();
  EXPECT_TRUE(lanes.Await(1e9));
  item = 3;
  EXPECT_TRUE(
      absl::IsUnavailable(lanes.Put(item, QueueLane::kClients, TwoLanes<int>::IfFull::kWait)));
  EXPECT_EQ(item, 3) << "as it was";
  EXPECT_THAT(lanes.Close(), testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(lanes.size(), 0u);
}

TEST(TwoLanes, WhoWaitsForRoomIsLetInByTakeAndRefusedByClose) {
  using IfFull = TwoLanes<int>::IfFull;
  TwoLanes<int> lanes;
  for (std::size_t i = 0; i < kMaxQueue; ++i) {
    int item = 0;
    ASSERT_TRUE(lanes.Put(item, QueueLane::kOthers, IfFull::kPass).ok());
  }
  const auto put = [&lanes] {
    return std::async(std::launch::async, [&lanes] {
      int item = 7;
      return lanes.Put(item, QueueLane::kClients, IfFull::kWait);
    });
  };
  std::future<absl::Status> waits = put();
  lanes.Take(QueueLane::kOthers);
  EXPECT_TRUE(waits.get().ok());
  waits = put();
  lanes.Close();
  EXPECT_TRUE(absl::IsUnavailable(waits.get()));
}

// The names of the studies of each commit, in order.
class LoopLanes : public testing::Test {
 protected:
  LoopLanes() { Restart(/*max_batch_s=*/1e9); }
  ~LoopLanes() override { loop_.reset(); }

  void Restart(double max_batch_s) {
    loop_.reset();
    LoopOptions options;
    options.max_batch_s = max_batch_s;
    options.terminate = [](int) {};
    options.committed = [this](const std::vector<Change>& changes, const TunerState&) {
      std::string names;
      for (const Change& change : changes) {
        const auto* created = std::get_if<StudyCreated>(&change);
        if (created != nullptr) absl::StrAppend(&names, created->spec.name);
      }
      if (!names.empty()) commits_.push_back(names);
    };
    loop_ =
        std::make_unique<Loop>(std::make_unique<JournalStorage>(journal_), TunerState{}, options,
                               metrics_, [](const std::vector<Command>&, const TunerState&) {});
  }

  // Holds the owner in a commit; what is queued by `queue` meanwhile is served after it.
  template <typename Queue>
  void WhileOwnerIsBusy(Queue queue) {
    std::promise<void> began;
    journal_.began = &began;
    loop_->PostAsync({CreateStudy{Spec("busy")}, {}}, nullptr);
    began.get_future().wait();
    queue();
    journal_.let_go.set_value();
    loop_->Stop();
  }
  // Of an agent; which event it is does not matter to the queue.
  void Agent(const std::string& name) { loop_->PostAsync({CreateStudy{Spec(name)}, {}}, nullptr); }
  void Client(const std::string& name) {
    loop_->PostThen(CreateStudy{Spec(name)}, [](const Reply&) {});
  }

  Journal journal_;
  Metrics metrics_;
  std::vector<std::string> commits_;  // read after Stop
  std::unique_ptr<Loop> loop_;
};

TEST_F(LoopLanes, AClientWaitsForNoCommitOfWhatAgentsHaveSaidBefore) {
  WhileOwnerIsBusy([this] {
    for (const char* name : {"a", "b", "c"}) Agent(name);
    for (const char* name : {"1", "2"}) Client(name);
  });
  EXPECT_THAT(commits_, ElementsAre("busy", "12", "abc"));
}

TEST_F(LoopLanes, NeitherClientsNorAgentsStarve) {
  Restart(/*max_batch_s=*/0);
  WhileOwnerIsBusy([this] {
    for (const char* name : {"1", "2", "3", "4"}) Client(name);
    for (const char* name : {"a", "b"}) Agent(name);
  });
  EXPECT_THAT(commits_, ElementsAre("busy", "1", "a", "2", "b", "3", "4"));
}

TEST_F(LoopLanes, AClientsReadComesAfterItsWrites) {
  bool seen = false;
  WhileOwnerIsBusy([&] {
    Client("1");
    loop_->ReadThen([&seen](const View* view) {
      seen = view != nullptr && view->core.state().FindStudy("1") != nullptr;
    });
  });
  EXPECT_TRUE(seen);
}

TEST_F(LoopLanes, WhoIsToldOfWhatAnAgentSaidSeesItInItsNextCall) {
  std::promise<void> told;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, [&told](const Reply&) { told.set_value(); });
  told.get_future().wait();
  bool seen = false;
  ASSERT_TRUE(
      loop_->Read([&seen](const View& view) { seen = view.core.state().FindStudy("a") != nullptr; })
          .ok());
  EXPECT_TRUE(seen);
}

TEST_F(LoopLanes, AnEventAndALookAtWhatItLedToAreOneVisit) {
  std::string seen;
  const Reply reply =
      loop_->PostAndRead(CreateStudy{Spec("a")}, [&](const Reply& given, const View& view) {
        seen = view.core.state().studies.at(given.study()).spec.name;
        EXPECT_EQ(journal_.studies, 1) << "it is durable";
      });
  EXPECT_TRUE(reply.status.ok());
  EXPECT_EQ(seen, "a");
  bool looked = false;
  const auto look = [&looked](const Reply&, const View&) { looked = true; };
  EXPECT_TRUE(absl::IsNotFound(loop_->PostAndRead(StopStudy{"b"}, look).status));
  EXPECT_FALSE(looked) << "at nothing";
  const Reply failed = loop_->PostAndRead(CreateStudy{Spec("c")}, [](const Reply&, const View&) {
    throw std::runtime_error("bad text");
  });
  EXPECT_TRUE(absl::IsInternal(failed.status)) << failed.status;
  journal_.fails = true;
  EXPECT_TRUE(absl::IsUnavailable(loop_->PostAndRead(CreateStudy{Spec("d")}, look).status));
  EXPECT_FALSE(looked) << "at what is not durable";
}

// Nor through those who see less.
TEST_F(LoopLanes, NothingThatCameBehindAnEventComesBeforeTheLookAtIt) {
  for (const bool masked : {false, true}) {
    commits_.clear();
    journal_.let_go = {};
    Restart(/*max_batch_s=*/0);
    MaskingTuner masking(*loop_);
    Tuner& tuner = masked ? static_cast<Tuner&>(masking) : *loop_;
    std::future<bool> saw_later;
    WhileOwnerIsBusy([&] {
      saw_later = std::async(std::launch::async, [&tuner] {
        bool later = true;
        tuner.PostAndRead(CreateStudy{Spec("a")}, [&later](const Reply&, const View& view) {
          later = view.core.state().FindStudy("b") != nullptr;
        });
        return later;
      });
      while (loop_->queued() == 0) std::this_thread::yield();
      Client("b");
    });
    EXPECT_FALSE(saw_later.get()) << masked;
    EXPECT_THAT(commits_, ElementsAre("busy", "a", "b"));
  }
}

TEST_F(LoopLanes, ALookAtALaterAnswerSeesWhatItIsAbout) {
  StudySpec spec = Spec("clients");
  spec.kind = StudyKind::kByClients;
  const StudyId study = loop_->Post(CreateStudy{spec, true}).study();
  loop_->Post(AgentHello{"node", 1, {}});
  const TrialId first = loop_->Post(CreateTrial{study, nullptr}).trial();
  const TrialId second = loop_->Post(CreateTrial{study, nullptr}).trial();
  ASSERT_EQ(loop_->Post(AcquireSlots{first, 1, "", 60}).slots().size(), 1u);
  std::promise<void> began;
  journal_.began = &began;
  loop_->PostThen(CreateTrial{study, nullptr}, [](const Reply&) {});
  began.get_future().wait();
  std::future<int> held = std::async(std::launch::async, [&] {
    int slots = 0;
    loop_->PostAndRead(AcquireSlots{second, 1, "", 60}, [&](const Reply&, const View& view) {
      slots = view.core.Activity(second).slots;
    });
    return slots;
  });
  while (loop_->queued() == 0) std::this_thread::yield();
  loop_->PostThen(ReleaseSlots{first}, [](const Reply&) {});
  journal_.let_go.set_value();
  EXPECT_EQ(held.get(), 1);
}

TEST_F(LoopLanes, AViewerSeesNoSecretsInALookAfterAnEvent) {
  MaskingTuner masked(*loop_);
  bool shows = true;
  masked.PostAndRead(CreateStudy{Spec("a")},
                     [&shows](const Reply&, const View& view) { shows = view.shows_secrets; });
  EXPECT_FALSE(shows);
}

TEST_F(LoopLanes, ClientsWaitWhileTheQueueIsFullAndAgentsDoNot) {
  std::promise<void> began;
  journal_.began = &began;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, nullptr);
  began.get_future().wait();
  std::atomic<std::size_t> answered = 0;
  const auto count = [&answered](const Reply&) { ++answered; };
  for (std::size_t i = 0; i < kMaxQueue; ++i) loop_->PostAsync({Event{Tick{}}, {}}, count);
  std::atomic<bool> posted = false;
  std::thread client([&] {
    EXPECT_TRUE(loop_->Post(Tick{}).status.ok());
    posted = true;
  });
  // An agent's word and a call without a thread are queued all the same.
  EXPECT_TRUE(loop_->PostAsync({Event{Tick{}}, {}}, count));
  loop_->PostThen(Tick{}, count);
  EXPECT_EQ(loop_->queued(), kMaxQueue + 2);
  EXPECT_FALSE(posted);
  journal_.let_go.set_value();
  client.join();
  loop_->Stop();
  EXPECT_EQ(answered, kMaxQueue + 2);
}

TEST_F(LoopLanes, RefusesCallsBeyondTheMostThatMayWait) {
  std::promise<void> began;
  journal_.began = &began;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, nullptr);
  began.get_future().wait();
  for (std::size_t i = 0; i < kMaxOpenCalls; ++i) loop_->ReadThen([](const View*) {});
  absl::Status refused;
  loop_->PostThen(Tick{}, [&refused](const Reply& reply) { refused = reply.status; });
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(loop_->PostAsync({Event{Tick{}}, {}}, nullptr)) << "agents are not refused";
  journal_.let_go.set_value();
}

TEST_F(LoopLanes, ABatchEndsWhenItHasTakenLongEnough) {
  Restart(/*max_batch_s=*/0);
  std::promise<void> began;
  journal_.began = &began;
  loop_->PostAsync({CreateStudy{Spec("a")}, {}}, nullptr);
  began.get_future().wait();
  for (const char* name : {"b", "c", "d"}) {
    loop_->PostThen(CreateStudy{Spec(name)}, [](const Reply&) {});
  }
  const int before = journal_.commits;
  journal_.let_go.set_value();
  ASSERT_TRUE(loop_->Read([](const View&) {}).ok());
  EXPECT_EQ(journal_.commits - before, 4) << "one each, and the one that was under way";
}

}  // namespace
}  // namespace espalier
