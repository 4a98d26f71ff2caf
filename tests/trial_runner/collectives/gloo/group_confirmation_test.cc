#include "trial_runner/collectives/gloo/group_confirmation.h"

#include <chrono>
#include <future>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"
#include "trial_runner/collectives/rendezvous/rendezvous.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kGeneration = 5;

GroupPlan PlanOf(int rank, int size, const std::string& secret = "s") {
  return {kGeneration, rank, size, "", secret};
}

// What `rank` hears if each of the others says what its plan has it say.
std::vector<std::uint8_t> HeardBy(int rank, const std::vector<GroupPlan>& others) {
  std::vector<std::uint8_t> heard;
  for (const GroupPlan& other : others) {
    const std::vector<std::uint8_t> said = ConfirmationsOf(other);
    const auto mine = said.begin() + static_cast<std::ptrdiff_t>(kConfirmationBytes) * rank;
    heard.insert(heard.end(), mine, mine + static_cast<std::ptrdiff_t>(kConfirmationBytes));
  }
  return heard;
}

TEST(GroupConfirmation, MembersOfOneSecretConfirmEachOther) {
  const auto heard = HeardBy(1, {PlanOf(0, 3), PlanOf(1, 3), PlanOf(2, 3)});
  EXPECT_EQ(Describe(FindUnconfirmed(PlanOf(1, 3), heard)), "");
}

TEST(GroupConfirmation, NamesWhoSaysWhatAnotherOrAnEarlierMemberWouldSay) {
  GroupPlan earlier = PlanOf(2, 4);
  earlier.generation = kGeneration - 1;
  const auto heard =
      HeardBy(1, {PlanOf(3, 4), PlanOf(1, 4), earlier, PlanOf(3, 4, "another secret")});
  const Unconfirmed found = FindUnconfirmed(PlanOf(1, 4), heard);
  EXPECT_THAT(found.wrong, ElementsAre(0, 2, 3));
  EXPECT_THAT(found.silent, IsEmpty());
  EXPECT_THAT(Describe(found), HasSubstr("the connection of ranks 0, 2, 3 is not that member's"));
}

TEST(GroupConfirmation, TellsWhoHasSaidNothing) {
  auto heard = HeardBy(0, {PlanOf(0, 2), PlanOf(1, 2)});
  std::fill(heard.begin(), heard.end(), std::uint8_t{0});
  const Unconfirmed found = FindUnconfirmed(PlanOf(0, 2), heard);
  EXPECT_THAT(found.silent, ElementsAre(1));
  EXPECT_EQ(Describe(found),
            "the other end of the connection of rank 1 has not confirmed that it is that member");
}

// What one has heard is of no use to it: each way between each two has words of its own.
TEST(GroupConfirmation, NoTwoWaysHaveTheSameWords) {
  std::set<std::vector<std::uint8_t>> words;
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<std::uint8_t> said = ConfirmationsOf(PlanOf(rank, 4));
    for (auto part = said.begin(); part != said.end();) {
      const auto end = part + static_cast<std::ptrdiff_t>(kConfirmationBytes);
      words.emplace(part, end);
      part = end;
    }
  }
  EXPECT_EQ(words.size(), 16U);
}

// ---- Over Gloo's own connections ---------------------------------------------------------------

class Table final : public c10d::Store {
 public:
  explicit Table(std::unique_ptr<RendezvousClient> client) : client_(std::move(client)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::intrusive_ptr<Table>::unsafe_reclaim_from_nonowning(this);
  }
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    EXPECT_TRUE(
        client_->Set(key, {reinterpret_cast<const char*>(value.data()), value.size()}).ok());
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const auto value = client_->Get(key);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? std::vector<std::uint8_t>(value->begin(), value->end())
                      : std::vector<std::uint8_t>();
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }
  std::int64_t add(const std::string&, std::int64_t) override { return 0; }
  bool deleteKey(const std::string&) override { return false; }
  bool check(const std::vector<std::string>&) override { return false; }
  std::int64_t getNumKeys() override { return 0; }

 private:
  const std::unique_ptr<RendezvousClient> client_;
};

// Takes a member's place at the other members' listeners, as one who has connected to them before
// the member did, and does not know what members say.
class Impostor {
 public:
  Impostor(const GroupPlan& plan, bool speaks) {
    running_ = std::async(std::launch::async, [this, plan, speaks] {
      const std::atomic<bool> wanted{false};
      auto client =
          RendezvousClient::Connect(plan.rendezvous, plan.generation, plan.secret, wanted);
      ASSERT_TRUE(client.ok()) << client.status();
      auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
      const auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<Table>(*std::move(client)), plan.rank, plan.size, options);
      // Gloo does not always wake who sends to a member that goes.
      group->setTimeout(std::chrono::seconds(5));
      if (speaks) Speak(*group, plan.size);
      leave_.get_future().wait();
    });
  }
  ~Impostor() {
    leave_.set_value();
    running_.wait();
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

 private:
  static void Speak(c10d::ProcessGroupGloo& group, int size) {
    const auto length = size * static_cast<std::int64_t>(kConfirmationBytes);
    at::Tensor said = at::ones({length}, at::kByte);
    at::Tensor heard = at::zeros({length}, at::kByte);
    std::vector<std::int64_t> equal_parts;
    try {
      group.alltoall_base(heard, said, equal_parts, equal_parts)->wait();
    } catch (const std::exception&) {
      // The members have gone.
    }
  }

  std::promise<void> leave_;
  std::future<void> running_;
};

class OverGloo : public testing::TestWithParam<bool> {};

// Of two members the first to find out says who it is, and the generation is given up, as the
// service does: the other may wait for words that the impostor, disturbed by that, never sends.
TEST_P(OverGloo, WhoHoldsTheConnectionOfAnotherIsFoundOut) {
  CollectivesOptions options;
  options.confirmation_limit_s = GetParam() ? 60 : 4;  // the next group has to keep it
  std::vector<std::unique_ptr<Collectives>> members;
  for (int i = 0; i < 2; ++i) members.push_back(*MakeGlooCollectives(options));
  const GroupPlan plan{kGeneration, 0, 3, members[0]->Address(), "s"};
  GroupPlan taken = plan;
  taken.rank = 2;
  {
    const Impostor impostor(taken, /*speaks=*/GetParam());
    std::vector<std::future<absl::Status>> forming;
    for (int rank = 0; rank < 2; ++rank) {
      GroupPlan own = plan;
      own.rank = rank;
      forming.push_back(std::async(std::launch::async, [&members, own] {
        const absl::Status formed = members[static_cast<std::size_t>(own.rank)]->Form(own);
        members[static_cast<std::size_t>(1 - own.rank)]->Abandon(kGeneration + 1, /*grace_s=*/5);
        return formed;
      }));
    }
    int told = 0;
    for (auto& form : forming) {
      const absl::Status formed = form.get();
      if (absl::IsAborted(formed)) continue;
      ++told;
      EXPECT_TRUE(absl::IsUnavailable(formed)) << formed;
      EXPECT_THAT(std::string(formed.message()), HasSubstr("generation 5: "));
      EXPECT_THAT(std::string(formed.message()), HasSubstr("the connection of rank 2 "));
    }
    EXPECT_GE(told, 1);
  }
  // The group forms anew, and once more where the machine keeps a member from its limit.
  bool all_formed = false;
  for (std::int64_t generation = kGeneration + 1; !all_formed; ++generation) {
    std::vector<std::future<absl::Status>> forming;
    for (int rank = 0; rank < 2; ++rank) {
      forming.push_back(std::async(std::launch::async, [&, rank, generation] {
        return members[static_cast<std::size_t>(rank)]->Form(
            {generation, rank, 2, members[0]->Address(), "t"});
      }));
    }
    all_formed = true;
    for (auto& form : forming) {
      const absl::Status formed = form.get();
      EXPECT_TRUE(formed.ok() || absl::IsUnavailable(formed)) << formed;
      all_formed = all_formed && formed.ok();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OverGloo, testing::Bool(), [](const auto& speaks) {
  return speaks.param ? "SaysSomethingElse" : "SaysNothing";
});

}  // namespace
}  // namespace espalier
