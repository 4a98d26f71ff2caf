// What all Collectives do: the same suite for each. Members are threads of one process here: each
// has its own Collectives object, sockets and all. Lost and stopped processes are in
// tests/trial_runner/torch.

#include "tests/trial_runner/collectives/collectives_contract.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include "gtest/gtest.h"
#include "tests/base/machine_needs.h"
#include "trial_runner/collectives/narrowed_collectives.h"
#include "trial_runner/collectives/rendezvous/rendezvous.h"

namespace espalier {
namespace {

using Type = CollectiveBuffer::Type;
using Members = std::vector<std::unique_ptr<Collectives>>;

constexpr std::chrono::seconds kPatience{60};  // for what must come, however busy the machine is

template <typename T>
constexpr Type kTypeOf = std::is_same_v<T, float>          ? Type::kFloat
                         : std::is_same_v<T, double>       ? Type::kDouble
                         : std::is_same_v<T, std::int64_t> ? Type::kInt64
                                                           : Type::kByte;

std::ptrdiff_t EntriesOf(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

bool ComesTrue(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

// The ports at which this process's sockets listen.
std::set<int> ListenedPorts() {
  std::set<int> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in address{};
    socklen_t address_size = sizeof address;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_size) == 0 &&
        address.sin_family == AF_INET) {
      ports.insert(ntohs(address.sin_port));
    }
  }
  return ports;
}

// As the service gives one to each generation.
std::string SecretOf(std::int64_t generation) { return "secret of " + std::to_string(generation); }

// What this process has of what groups need.
struct OpenThings {
  std::ptrdiff_t threads = 0;
  std::ptrdiff_t files = 0;
  bool operator==(const OpenThings&) const = default;

  static OpenThings Now() { return {EntriesOf("/proc/self/task"), EntriesOf("/proc/self/fd")}; }
  // When what was let go has ended: it no longer changes.
  static OpenThings AtRest() {
    OpenThings seen = Now();
    int times = 0;
    EXPECT_TRUE(ComesTrue([&] {
      const OpenThings now = Now();
      times = now == seen ? times + 1 : 0;
      seen = now;
      return times == 200;
    }));
    return seen;
  }
};

class CollectivesContract : public testing::TestWithParam<CollectivesUnderTest> {
 protected:
  Members MakeMembers(int count, const CollectivesOptions& options = {}) {
    Members members;
    for (int i = 0; i < count; ++i) {
      auto made = GetParam().make(options, i);
      EXPECT_TRUE(made.ok()) << made.status();
      members.push_back(std::move(*made));
    }
    return members;
  }

  template <typename T>
  CollectiveBuffer Place(int member, std::size_t count, T value) {
    const std::vector<T> values(count, value);
    std::vector<std::uint8_t> bytes(count * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    CollectiveBuffer placed =
        GetParam().place(kTypeOf<T>, bytes, static_cast<std::int64_t>(count), member);
    // For the steps of tests/gpu.
    RecordProperty("device", placed.device == CollectiveBuffer::kHost ? "cpu" : "cuda");
    return placed;
  }

  // OK if all values of the buffer are `expected`.
  template <typename T>
  absl::Status Expect(const CollectiveBuffer& buffer, T expected) {
    const std::vector<std::uint8_t> bytes = GetParam().read(buffer);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
      T value{};
      std::memcpy(&value, bytes.data() + i, sizeof(T));
      if (value != expected) return absl::InternalError("wrong content");
    }
    return absl::OkStatus();
  }

  // Runs `body(member, plan)` for each member as rank 0, 1, ... of `generation`, at the same time.
  template <typename Body>
  std::vector<absl::Status> InGroup(const Members& members, std::int64_t generation, int size,
                                    Body body) {
    std::vector<std::future<absl::Status>> running;
    for (int rank = 0; rank < size; ++rank) {
      running.push_back(std::async(std::launch::async, [&, rank] {
        const GroupPlan plan{generation, rank, size, members[0]->Address(), SecretOf(generation)};
        return body(*members[static_cast<std::size_t>(rank)], plan);
      }));
    }
    std::vector<absl::Status> statuses;
    for (auto& r : running) statuses.push_back(r.get());
    return statuses;
  }

  void ExpectAllOk(const std::vector<absl::Status>& statuses) {
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  }

  absl::Status FormAndSum(Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    const CollectiveBuffer values = Place(plan.rank, 1000, static_cast<float>(plan.rank + 1));
    if (absl::Status summed = member.AllReduceSum(values); !summed.ok()) return summed;
    const int sum_of_ranks = plan.size * (plan.size + 1) / 2;  // counted from 1
    return Expect(values, static_cast<float>(sum_of_ranks));
  }

  void ExpectGroupForms(const Members& members, std::int64_t generation, int size) {
    ExpectAllOk(InGroup(members, generation, size, [&](Collectives& member, const GroupPlan& plan) {
      return FormAndSum(member, plan);
    }));
  }

  // Rank 0 forms a group of two, begins what rank 1 has no part in, and waits; then it is told to
  // abandon the group.
  absl::Status Abandoned(const Members& members, std::int64_t generation,
                         const std::function<void(Collectives&)>& begin) {
    std::promise<void> waiting;
    auto statuses = std::async(std::launch::async, [&] {
      return InGroup(members, generation, 2, [&](Collectives& member, const GroupPlan& plan) {
        if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
        if (plan.rank == 1) return absl::OkStatus();
        begin(member);
        waiting.set_value();
        return member.WaitAll();
      });
    });
    waiting.get_future().wait();
    members[0]->Abandon(generation + 1);
    return statuses.get()[0];
  }
};

// Would notice if the Gloo headers that were compiled against do not fit the Gloo in LibTorch.
TEST_P(CollectivesContract, SumsBroadcastsAndGathersOverThreeMembers) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status summed = FormAndSum(member, plan); !summed.ok()) return summed;
    const auto bytes = Place<std::uint8_t>(plan.rank, 77, plan.rank == 2 ? 9 : 0);
    if (absl::Status sent = member.Broadcast(bytes, 2); !sent.ok()) return sent;
    if (absl::Status same = Expect<std::uint8_t>(bytes, 9); !same.ok()) return same;
    const auto table = member.AllGather({plan.rank, std::int64_t{10} * plan.rank});
    if (!table.ok()) return table.status();
    const std::vector<std::vector<std::int64_t>> expected{{0, 0}, {1, 10}, {2, 20}};
    return *table == expected ? absl::OkStatus() : absl::InternalError("wrong table");
  }));
}

TEST_P(CollectivesContract, SumsEveryTypeOfNumber) {
  const Members members = MakeMembers(2);
  ExpectAllOk(InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    const auto f = Place<float>(plan.rank, 3, 0.5);
    const auto d = Place<double>(plan.rank, 3, 1e-12);
    const auto i = Place<std::int64_t>(plan.rank, 3, std::int64_t{1} << 40);
    const auto b = Place<std::uint8_t>(plan.rank, 3, 100);
    for (const CollectiveBuffer& buffer : {f, d, i, b}) member.StartAllReduceSum(buffer);
    if (absl::Status done = member.WaitAll(); !done.ok()) return done;
    for (absl::Status same :
         {Expect<float>(f, 1), Expect<double>(d, 2e-12),
          Expect<std::int64_t>(i, std::int64_t{1} << 41), Expect<std::uint8_t>(b, 200)}) {
      if (!same.ok()) return same;
    }
    return absl::OkStatus();
  }));
}

TEST_P(CollectivesContract, RunsSeveralOperationsAtOnceInTheOrderTheyWereBegun) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    std::vector<CollectiveBuffer> sums;
    for (int i = 0; i < 8; ++i) {
      sums.push_back(Place(plan.rank, 50'000, static_cast<float>(i)));
      member.StartAllReduceSum(sums.back());
    }
    if (absl::Status done = member.WaitAll(); !done.ok()) return done;
    for (int i = 0; i < 8; ++i) {
      const absl::Status same =
          Expect(sums[static_cast<std::size_t>(i)], static_cast<float>(3 * i));
      if (!same.ok()) return same;
    }
    return absl::OkStatus();
  }));
}

TEST_P(CollectivesContract, SendsBetweenTwoWhileTheThirdLooksOn) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    const bool has_it = plan.rank == 2;
    const auto a = Place<std::uint8_t>(plan.rank, 100'000, has_it ? 5 : 0);
    const auto b = Place<double>(plan.rank, 3, has_it ? 1.5 : 0.0);
    for (const CollectiveBuffer& buffer : {a, b}) {
      if (plan.rank == 2) member.StartSend(buffer, 0);
      if (plan.rank == 0) member.StartReceive(buffer, 2);
    }
    if (absl::Status done = member.WaitAll(); !done.ok()) return done;
    const bool gets_it = plan.rank != 1;
    if (absl::Status same = Expect<std::uint8_t>(a, gets_it ? 5 : 0); !same.ok()) return same;
    return Expect<double>(b, gets_it ? 1.5 : 0.0);
  }));
}

TEST_P(CollectivesContract, SendsInBothDirectionsAtOnceWithAnAllReduceBetween) {
  const Members members = MakeMembers(2);
  ExpectAllOk(InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    const int other = 1 - plan.rank;
    const auto out = Place(plan.rank, 1'000'000, static_cast<float>(plan.rank));
    const auto in = Place<float>(plan.rank, 1'000'000, -1);
    const auto sum = Place<float>(plan.rank, 10, 1);
    member.StartSend(out, other);
    member.StartAllReduceSum(sum);
    member.StartReceive(in, other);
    if (absl::Status done = member.WaitAll(); !done.ok()) return done;
    if (absl::Status same = Expect<float>(sum, 2); !same.ok()) return same;
    return Expect(in, static_cast<float>(other));
  }));
}

TEST_P(CollectivesContract, GroupOfOneNeedsNobody) {
  const Members members = MakeMembers(1);
  ExpectGroupForms(members, 1, 1);
}

TEST_P(CollectivesContract, GrowsAndShrinksThroughGenerations) {
  const Members members = MakeMembers(4);
  std::int64_t generation = 0;
  for (const int size : {1, 2, 4, 1, 3, 2}) ExpectGroupForms(members, ++generation, size);
}

TEST_P(CollectivesContract, TheNextGroupFormsWhileThePresentOneWorks) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [&](Collectives& member, GroupPlan plan) {
    if (auto formed = member.Form(plan); !formed.ok()) return formed;
    plan.generation = 2;
    plan.size = 2;
    plan.secret = SecretOf(2);
    const bool stays = plan.rank < plan.size;
    if (plan.rank == 0) member.Expect(plan.generation, plan.secret);
    if (stays) member.Prepare(plan);
    // The present group, until all know that they have prepared.
    for (int step = 0;; ++step) {
      const auto values = Place<float>(plan.rank, 64, static_cast<float>(step + plan.rank));
      if (auto sum = member.AllReduceSum(values); !sum.ok()) return sum;
      const auto of_three = static_cast<float>(3 * step + 0 + 1 + 2);
      if (auto right = Expect<float>(values, of_three); !right.ok()) return right;
      const auto ready = member.AllGather({member.Prepared(2) ? 1 : 0});
      if (!ready.ok()) return ready.status();
      if (std::all_of(ready->begin(), ready->end(), [](const auto& r) { return r[0] == 1; })) break;
    }
    if (!stays) return absl::OkStatus();
    return FormAndSum(member, plan);
  }));
}

// Whether a member has prepared is its own affair: what the others see is the same.
TEST_P(CollectivesContract, AGroupThatSomeHavePreparedFormsWithTheOthers) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [&](Collectives& member, const GroupPlan& plan) {
    if (plan.rank != 1) member.Prepare(plan);
    return FormAndSum(member, plan);
  }));
}

TEST_P(CollectivesContract, ANewerPlanTakesThePlaceOfOneThatWasPrepared) {
  const Members members = MakeMembers(3);
  const GroupPlan older{1, 0, 2, members[0]->Address(), SecretOf(1)};
  members[0]->Prepare(older);  // its other member never comes
  ExpectAllOk(InGroup(members, 2, 3, [&](Collectives& member, const GroupPlan& plan) {
    if (plan.rank != 2) member.Prepare(plan);
    return FormAndSum(member, plan);
  }));
}

// The others may be through with the formation of the next group, which nobody announces again.
TEST_P(CollectivesContract, WhoLosesItsGroupOrFormsAnOlderOneKeepsTheOneThatItHasPrepared) {
  const Members members = MakeMembers(2);
  ExpectAllOk(InGroup(members, 1, 2, [&](Collectives& member, GroupPlan plan) {
    if (auto formed = member.Form(plan); !formed.ok()) return formed;
    const GroupPlan older{3, 0, 2, members[0]->Address(), SecretOf(3)};
    for (const std::int64_t next : {2, 4}) {
      plan = {next, plan.rank, 2, members[0]->Address(), SecretOf(next)};
      if (plan.rank == 0) member.Expect(next, plan.secret);
      member.Prepare(plan);
      EXPECT_TRUE(ComesTrue([&] { return member.Prepared(next); }));
      if (const auto all = member.AllGather({1}); !all.ok()) return all.status();
      if (plan.rank == 0) {
        member.Abandon(next);
        absl::Status lost = member.AllReduceSum(Place(plan.rank, 8, 1.0));
        EXPECT_EQ((next == 4 ? member.Form(older) : lost).code(), absl::StatusCode::kAborted);
      }
      if (auto summed = FormAndSum(member, plan); !summed.ok()) return summed;
    }
    return absl::OkStatus();
  }));
}

TEST_P(CollectivesContract, PreparingIsNotWaitedForForEver) {
  const Members members = MakeMembers(1);
  members[0]->Prepare({1, 0, 2, members[0]->Address(), SecretOf(1)});
  EXPECT_TRUE(ComesTrue([&] { return members[0]->Prepared(1); }));
  EXPECT_TRUE(members[0]->Prepared(2));  // of which nothing is known
}

TEST_P(CollectivesContract, FormsOverIpv6) {
  if (NotTestedHere(NoIpv6())) return;
  CollectivesOptions options;
  options.host = "::1";
  const Members members = MakeMembers(2, options);
  EXPECT_EQ(members[0]->Address().substr(0, 6), "[::1]:");
  for (const std::int64_t generation : {1, 2}) ExpectGroupForms(members, generation, 2);
}

// Those of groups that were left close in their own time, so that there are more than one a member.
TEST_P(CollectivesContract, ListensWithinThePortRangeOnly) {
  const std::set<int> before = ListenedPorts();
  // Each run has a range of its own: threads may still be closing the listeners of the one before.
  static int low = 21000;
  low += 100;
  const PortRange range{low, low + 63};
  CollectivesOptions options;
  options.ports = range;
  const Members members = MakeMembers(3, options);
  for (std::int64_t generation = 1; generation <= 5; ++generation) {
    ExpectGroupForms(members, generation, 3);
    std::size_t ours = 0;
    for (const int port : ListenedPorts()) {
      if (before.contains(port)) continue;
      EXPECT_TRUE(port >= range.low && port <= range.high) << port;
      ++ours;
    }
    EXPECT_GE(ours, 6U) << "a rendezvous and a group's listener for each member";
  }
}

TEST_P(CollectivesContract, AbandonWakesWhoeverWaitsAndTheNextGroupForms) {
  const Members members = MakeMembers(2);
  const std::vector<std::function<void(Collectives&)>> hopeless = {
      [&](Collectives& c) { c.StartAllReduceSum(Place(0, 8, 1.0)); },
      [&](Collectives& c) { c.StartBroadcast(Place(0, 8, 1.0), 1); },
      [&](Collectives& c) { c.StartReceive(Place(0, 8, 1.0), 1); },
      [&](Collectives& c) {
        for (int i = 0; i < 5; ++i) c.StartAllReduceSum(Place(0, 8, 1.0));
        for (int i = 0; i < 5; ++i) c.StartSend(Place(0, 1'000'000, 1.0), 1);
        for (int i = 0; i < 5; ++i) c.StartReceive(Place(0, 8, 1.0), 1);
      },
  };
  std::int64_t generation = 0;
  for (const auto& begin : hopeless) {
    EXPECT_EQ(Abandoned(members, ++generation, begin).code(), absl::StatusCode::kAborted);
    ExpectGroupForms(members, ++generation, 2);
  }
}

// The last of three members stands still: nothing of the others' may wait for it.
TEST_P(CollectivesContract, AbandonedGroupLeavesNoThreadsAndNoSockets) {
  const Members members = MakeMembers(3);
  ExpectGroupForms(members, 1, 3);  // what a first group loads for good is there from now on
  for (const auto& member : members) ASSERT_TRUE(member->Form({2, 0, 1, ""}).ok());
  const OpenThings alone = OpenThings::AtRest();
  ExpectAllOk(InGroup(
      members, 3, 3, [](Collectives& member, const GroupPlan& plan) { return member.Form(plan); }));
  const OpenThings together = OpenThings::AtRest();
  ExpectAllOk(InGroup(members, 3, 2, [&](Collectives& member, const GroupPlan& plan) {
    member.Abandon(4, /*grace_s=*/0.05);
    member.StartReceive(Place(plan.rank, 8, 1.0), 2);
    for (int i = 0; i < 5; ++i) member.StartAllReduceSum(Place(plan.rank, 8, 1.0));
    // By the word, or because the other has gone by it.
    return member.WaitAll().ok() ? absl::InternalError("not woken") : absl::OkStatus();
  }));
  const std::ptrdiff_t threads = alone.threads + (together.threads - alone.threads) / 3;
  const std::ptrdiff_t files = alone.files + (together.files - alone.files) / 3;
  EXPECT_TRUE(ComesTrue([&] {
    const OpenThings now = OpenThings::Now();
    return now.threads <= threads && now.files <= files;
  })) << OpenThings::Now().threads
      << " threads for " << threads << ", " << OpenThings::Now().files << " files for " << files;
}

TEST_P(CollectivesContract, MemberThatEndsWithOperationsBegunLeavesNothing) {
  Members members = MakeMembers(2);
  ExpectGroupForms(members, 1, 2);
  const OpenThings before = OpenThings::AtRest();
  ExpectAllOk(InGroup(members, 2, 2, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    member.StartReceive(Place(plan.rank, 1'000'000, 1.0), 1 - plan.rank);
    if (plan.rank == 0) member.StartAllReduceSum(Place(plan.rank, 1'000'000, 1.0));
    return absl::OkStatus();
  }));
  members.clear();
  EXPECT_TRUE(ComesTrue([&] {
    const OpenThings now = OpenThings::Now();
    return now.threads < before.threads && now.files < before.files;
  }));
}

TEST_P(CollectivesContract, AbandonWakesAFormationWhoseMemberNeverComes) {
  const Members members = MakeMembers(2);
  auto lonely = std::async(std::launch::async, [&] {
    return members[0]->Form({5, 0, 2, members[0]->Address()});
  });
  members[0]->Abandon(6);
  EXPECT_EQ(lonely.get().code(), absl::StatusCode::kAborted);
  ExpectGroupForms(members, 6, 2);
}

TEST_P(CollectivesContract, AbandonWithGraceWakesOnlyWhoGoesOnWaiting) {
  const Members members = MakeMembers(2);
  for (const auto& member : members) member->Abandon(2, /*grace_s=*/3600);
  std::promise<void> other_is_done;
  const auto statuses = InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
    // Everybody comes: nobody waits for long, and the group works.
    absl::Status summed = FormAndSum(member, plan);
    if (plan.rank == 1) other_is_done.set_value();
    if (plan.rank == 1 || !summed.ok()) return summed;
    other_is_done.get_future().wait();
    member.Abandon(3, /*grace_s=*/0.05);
    return member.AllReduceSum(Place(plan.rank, 8, 1.0));
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
}

TEST_P(CollectivesContract, LeastGraceIsForMembersThatComeLater) {
  const Members members = MakeMembers(2);
  const auto statuses = InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status summed = FormAndSum(member, plan); !summed.ok()) return summed;
    member.SetLeastGrace(3600);
    member.Abandon(2, /*grace_s=*/0.01);
    if (plan.rank == 1) {
      EXPECT_TRUE(ComesTrue([&] { return members[0]->Waiting_s() > 0.05; }));
    }
    return member.AllReduceSum(Place(plan.rank, 8, 1.0));
  });
  ExpectAllOk(statuses);
}

TEST_P(CollectivesContract, WaitingEndsAtTheLimit) {
  CollectivesOptions options;
  options.collective_limit_s = 4;  // forming the group takes several, on a busy machine too
  const Members members = MakeMembers(2, options);
  const auto statuses = InGroup(members, 1, 2, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok() || plan.rank == 1) return formed;
    return member.AllReduceSum(Place(plan.rank, 8, 1.0));
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded) << statuses[0];
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  ExpectGroupForms(members, 2, 2);
}

TEST_P(CollectivesContract, FormationEndsAtTheLimit) {
  CollectivesOptions options;
  options.formation_limit_s = 0.2;
  const Members members = MakeMembers(2, options);
  const absl::Status lonely = members[0]->Form({1, 0, 2, members[0]->Address()});
  EXPECT_EQ(lonely.code(), absl::StatusCode::kDeadlineExceeded) << lonely;
}

TEST_P(CollectivesContract, MembersWithDifferentSecretsDoNotForm) {
  const Members members = MakeMembers(2);
  const auto statuses = InGroup(members, 1, 2, [&](Collectives& member, GroupPlan plan) {
    if (plan.rank == 0) return member.Form(plan);
    plan.secret = "guessed";
    const absl::Status refused = member.Form(plan);
    members[0]->Abandon(2);  // which else waits on
    return refused;
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kAborted) << statuses[0];
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kUnavailable) << statuses[1];
  EXPECT_NE(statuses[1].message().find("another secret of generation 1"), absl::string_view::npos)
      << statuses[1];
  ExpectGroupForms(members, 2, 2);
}

// As from a service of an earlier release.
TEST_P(CollectivesContract, FormsWithoutSecretsToo) {
  const Members members = MakeMembers(2);
  ExpectAllOk(InGroup(members, 1, 2, [&](Collectives& member, GroupPlan plan) {
    plan.secret.clear();
    return FormAndSum(member, plan);
  }));
}

// Rank 0 is told of the next group while it trains in the one before, and comes to it later.
TEST_P(CollectivesContract, OthersMayComeBeforeRankZeroForms) {
  const Members members = MakeMembers(2);
  ExpectGroupForms(members, 1, 1);
  members[0]->Expect(2, SecretOf(2));
  auto joins = std::async(std::launch::async, [&] {
    return FormAndSum(*members[1], {2, 1, 2, members[0]->Address(), SecretOf(2)});
  });
  const absl::Status formed =
      FormAndSum(*members[0], {2, 0, 2, members[0]->Address(), SecretOf(2)});
  EXPECT_TRUE(formed.ok()) << formed;
  const absl::Status joined = joins.get();
  EXPECT_TRUE(joined.ok()) << joined;
}

TEST_P(CollectivesContract, FormRefusesAGenerationOlderThanTheWord) {
  const Members members = MakeMembers(1);
  members[0]->Abandon(3);
  EXPECT_EQ(members[0]->Form({2, 0, 1, members[0]->Address()}).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(members[0]->Form({3, 0, 1, members[0]->Address()}).ok());
}

// Where LibTorch computes on the buffers in between.
class ContractWithLibTorch : public CollectivesContract {};
// The suite over stand-ins has none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ContractWithLibTorch);

std::vector<CollectivesUnderTest> AllWithLibTorch() {
  std::vector<CollectivesUnderTest> all;
  for (const CollectivesUnderTest& each : AllCollectivesUnderTest()) {
    if (each.libtorch_computes) all.push_back(each);
  }
  return all;
}

TEST_P(ContractWithLibTorch, ItsFirstMembersAreAGroupWithoutTheLast) {
  const Members members = MakeMembers(3);
  ExpectAllOk(InGroup(members, 1, 3, [&](Collectives& member, const GroupPlan& plan) {
    if (absl::Status formed = member.Form(plan); !formed.ok()) return formed;
    if (plan.rank < 2) {
      NarrowedCollectives two(member, plan.rank, 2);
      const auto sum = Place(plan.rank, 1000, static_cast<float>(plan.rank + 1));
      const auto from_one = Place<std::uint8_t>(plan.rank, 77, plan.rank == 1 ? 9 : 0);
      two.StartAllReduceSum(sum);
      two.StartBroadcast(from_one, 1);
      if (absl::Status done = two.WaitAll(); !done.ok()) return done;
      if (absl::Status same = Expect(sum, 3.0F); !same.ok()) return same;
      if (absl::Status same = Expect<std::uint8_t>(from_one, 9); !same.ok()) return same;
      const auto table = two.AllGather({plan.rank, std::int64_t{10} * plan.rank});
      if (!table.ok()) return table.status();
      const std::vector<std::vector<std::int64_t>> expected{{0, 0}, {1, 10}};
      if (*table != expected) return absl::InternalError("wrong table");
    }
    const auto of_all = Place(plan.rank, 10, 1.0);
    if (absl::Status summed = member.AllReduceSum(of_all); !summed.ok()) return summed;
    return Expect(of_all, 3.0);
  }));
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesContract, testing::ValuesIn(AllCollectivesUnderTest()),
                         [](const auto& param) { return param.param.name; });
INSTANTIATE_TEST_SUITE_P(All, ContractWithLibTorch, testing::ValuesIn(AllWithLibTorch()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace espalier
