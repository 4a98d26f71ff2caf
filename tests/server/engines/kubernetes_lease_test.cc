#include "tuner/server/engines/kubernetes_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/server/engines/small_kubernetes.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// A clock that stands still until it is moved.
class HandClock {
 public:
  std::function<double()> clock_s() const {
    return [seconds = seconds_] { return seconds->load(); };
  }
  void Move(double seconds) { *seconds_ = *seconds_ + seconds; }

 private:
  std::shared_ptr<std::atomic<double>> seconds_ = std::make_shared<std::atomic<double>>(1e6);
};

KubernetesLease::Options Of(const std::string& holder, const HandClock& clock = {},
                            double duration_s = 3600) {
  return {.name = "vision", .holder = holder, .duration_s = duration_s, .clock_s = clock.clock_s()};
}

// A short lease leaves the server half a second for its answers, which a busy machine may miss.
void TakeInTime(KubernetesLease& lease) {
  bool taken = false;
  for (int tries = 0; !taken && tries < 100; ++tries) taken = lease.Take().value_or(false);
  EXPECT_TRUE(taken);
}

TEST(KubernetesLease, IsHeldByOneAndGoesToTheNextWhenItIsGivenBack) {
  SmallKubernetes kubernetes;
  std::optional<KubernetesLease> first(std::in_place, kubernetes.server(), Of("first"));
  KubernetesLease second(kubernetes.server(), Of("second"));
  EXPECT_TRUE(*first->Take());
  EXPECT_FALSE(*second.Take());
  EXPECT_EQ(second.holder(), "first");
  EXPECT_TRUE(*first->Take()) << "it has it already";
  first.reset();
  EXPECT_TRUE(*second.Take());
}

TEST(KubernetesLease, IsGivenBackThoughAnAttemptFails) {
  SmallKubernetes kubernetes;
  for (const auto& [request, code] :
       {std::pair("GET /leases", 500), {"PUT /leases", 500}, {"PUT /leases", 409}}) {
    std::optional<KubernetesLease> first(std::in_place, kubernetes.server(), Of("first", {}, 1));
    TakeInTime(*first);
    kubernetes.SetFault(request, {.code = code});
    first.reset();
    EXPECT_TRUE(*KubernetesLease(kubernetes.server(), Of("second")).Take()) << request << code;
  }
}

TEST(KubernetesLease, OfTwoThatTakeItAtOnceOneHasIt) {
  SmallKubernetes kubernetes;
  KubernetesLease lease(kubernetes.server(), Of("first"));
  // Another was quicker: to make it, and to change it.
  kubernetes.SetFault("POST /leases", {.code = 409, .reason = "AlreadyExists"});
  EXPECT_FALSE(*lease.Take());
  EXPECT_TRUE(*lease.Take());
  kubernetes.SetFault("PUT /leases", {.code = 409, .reason = "Conflict"});
  EXPECT_FALSE(*lease.Take());
}

TEST(KubernetesLease, IsTakenFromWhoHasBeenSilentForAsLongAsItSays) {
  SmallKubernetes kubernetes;
  HandClock clock;
  KubernetesLease silent(kubernetes.server(), Of("silent", clock));
  ASSERT_TRUE(*silent.Take());
  KubernetesLease next(kubernetes.server(), Of("next", clock));
  EXPECT_FALSE(*next.Take());
  clock.Move(3599);
  EXPECT_FALSE(*next.Take());
  clock.Move(1);
  EXPECT_TRUE(*next.Take());
  // Who had it says so when it finds out.
  EXPECT_TRUE(silent.Renew().ok());
  EXPECT_EQ(silent.WhyLost(), "another service has it: next");
}

TEST(KubernetesLease, IsGivenUpBeforeAnotherMayTakeItWhereItIsNotRenewed) {
  SmallKubernetes kubernetes;
  for (const auto& [request, fault, told] :
       std::vector<std::tuple<std::string, SmallKubernetes::Fault, std::string>>{
           {"GET /leases", {.code = 500, .message = "etcd is away"}, "etcd is away"},
           {"PUT /leases", {.code = 403, .message = "not any more"}, "not any more"},
           {"GET /leases", {.code = 429}, "has too much to do"}}) {
    HandClock clock;
    KubernetesLease lease(kubernetes.server(), Of("first", clock));
    ASSERT_TRUE(*lease.Take());
    clock.Move(2000);
    ASSERT_TRUE(lease.Renew().ok());
    clock.Move(2399);
    EXPECT_EQ(lease.WhyLost(), "") << "it has been renewed since";
    kubernetes.SetFault(request, fault);
    EXPECT_FALSE(lease.Renew().ok());
    EXPECT_EQ(lease.WhyLost(), "");
    clock.Move(1);
    EXPECT_THAT(lease.WhyLost(), HasSubstr("it has not been renewed for 2400.0 s: "));
    EXPECT_THAT(lease.WhyLost(), HasSubstr(told));
  }
}

TEST(KubernetesLease, CountsFromWhenTheRenewalWasBegun) {
  SmallKubernetes kubernetes;
  double now_s = 0;
  double pace_s = 0;  // of each look at the clock: the answers are slow
  KubernetesLease lease(kubernetes.server(),
                        {.name = "vision", .holder = "slow", .duration_s = 3600, .clock_s = [&] {
                           return now_s += pace_s;
                         }});
  ASSERT_TRUE(*lease.Take());
  pace_s = 2400;
  ASSERT_TRUE(lease.Renew().ok());
  EXPECT_THAT(lease.WhyLost(), HasSubstr("it has not been renewed for 2400.0 s"));
}

TEST(KubernetesLease, IsGivenUpWhileTheServerDoesNotAnswer) {
  SmallKubernetes kubernetes;
  HandClock clock;
  KubernetesLease lease(kubernetes.server(), Of("first", clock, 0.3));
  TakeInTime(lease);
  kubernetes.SetFault("GET /leases", {.code = SmallKubernetes::kSilent, .times = 100});
  const std::size_t before = kubernetes.Requests("GET /leases").size();
  std::promise<std::string> lost;
  lease.Keep([&lost](const std::string& why) { lost.set_value(why); });
  kubernetes.Requests("GET /leases", before + 1);  // it is being renewed
  clock.Move(10);
  EXPECT_THAT(lost.get_future().get(), HasSubstr("it has not been renewed for 10.0 s"));
}

TEST(KubernetesLease, IsRenewedUntilItIsGivenBack) {
  SmallKubernetes kubernetes;
  // On a busy machine the server may answer too late for it to be given back.
  bool given_back = false;
  for (int tries = 0; !given_back && tries < 20; ++tries) {
    const std::size_t before = kubernetes.Requests("PUT /leases").size();
    {
      KubernetesLease lease(kubernetes.server(), Of("first", {}, 0.3));
      TakeInTime(lease);
      lease.Keep([](const std::string&) { ADD_FAILURE() << "nobody else wants it"; });
      // A server that is away does not take it from us.
      kubernetes.SetFault("GET /leases", {.code = 500, .message = "etcd is away", .times = 3});
      ASSERT_GE(kubernetes.Requests("PUT /leases", before + 3).size(), before + 3);
    }
    const std::string last = kubernetes.Requests("PUT /leases").back().body;
    given_back = last.find("\"holderIdentity\":\"\"") != std::string::npos;
  }
  EXPECT_TRUE(given_back);
}

TEST(KubernetesLease, TellsOnceWhoHasIt) {
  SmallKubernetes kubernetes;
  HandClock clock;
  KubernetesLease first(kubernetes.server(), Of("first", clock, 0.3));
  TakeInTime(first);
  KubernetesLease next(kubernetes.server(), Of("next", clock));
  EXPECT_FALSE(*next.Take());
  clock.Move(3600);
  ASSERT_TRUE(*next.Take());
  clock.Move(-3600);  // the first does not know of it
  std::promise<std::string> lost;
  first.Keep([&lost](const std::string& why) { lost.set_value(why); });
  EXPECT_EQ(lost.get_future().get(), "another service has it: next");
  EXPECT_TRUE(*next.Take()) << "it was not given back by who had lost it";
}

TEST(KubernetesLease, TellsWhichRightIsMissing) {
  SmallKubernetes kubernetes;
  KubernetesLease lease(kubernetes.server(), Of("first"));
  kubernetes.SetFault("GET /leases", {.code = 403, .message = "cannot get resource \"leases\""});
  EXPECT_EQ(lease.Take().status(), absl::PermissionDeniedError("cannot get resource \"leases\""));
}

}  // namespace
}  // namespace espalier
