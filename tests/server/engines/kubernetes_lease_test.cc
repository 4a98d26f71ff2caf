#include "tuner/server/engines/kubernetes_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

#include "tests/server/engines/small_kubernetes.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

KubernetesLease::Options Of(const std::string& holder, double duration_s = 3600) {
  return {.name = "vision", .holder = holder, .duration_s = duration_s};
}

// A short lease leaves the server half a second for its answers, which a busy machine may miss.
void TakeInTime(KubernetesLease& lease) {
  while (!lease.Take().value_or(false)) continue;
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
  // It is never renewed, nor given back: it is the thread that would do so.
  KubernetesLease silent(kubernetes.server(), Of("silent", 1));
  TakeInTime(silent);
  KubernetesLease next(kubernetes.server(), Of("next"));
  int refused = 0;
  while (!*next.Take()) ++refused;
  EXPECT_GT(refused, 0);
  // Who had it says so when it finds out.
  std::promise<std::string> lost;
  silent.Keep([&lost](const std::string& holder) { lost.set_value(holder); });
  EXPECT_EQ(lost.get_future().get(), "next");
  EXPECT_TRUE(*next.Take()) << "it was not given back by who had lost it";
}

TEST(KubernetesLease, IsRenewedUntilItIsGivenBack) {
  SmallKubernetes kubernetes;
  {
    KubernetesLease lease(kubernetes.server(), Of("first", 1));
    TakeInTime(lease);
    lease.Keep([](const std::string&) { ADD_FAILURE() << "nobody else wants it"; });
    // A server that is away does not take it from us.
    kubernetes.SetFault("GET /leases", {.code = 500, .message = "etcd is away", .times = 3});
    ASSERT_GE(kubernetes.Requests("PUT /leases", 3).size(), 3u);
  }
  EXPECT_THAT(kubernetes.Requests("PUT /leases").back().body, HasSubstr("\"holderIdentity\":\"\""));
}

TEST(KubernetesLease, TellsWhichRightIsMissing) {
  SmallKubernetes kubernetes;
  KubernetesLease lease(kubernetes.server(), Of("first"));
  kubernetes.SetFault("GET /leases", {.code = 403, .message = "cannot get resource \"leases\""});
  EXPECT_EQ(lease.Take().status(), absl::PermissionDeniedError("cannot get resource \"leases\""));
}

}  // namespace
}  // namespace espalier
