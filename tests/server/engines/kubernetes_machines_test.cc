#include "tuner/server/engines/kubernetes_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "tests/server/engines/small_kubernetes.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/engines/kubernetes_pod.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kPatience_s = 60;

class KubernetesMachinesTest : public ::testing::Test {
 protected:
  KubernetesMachinesTest() : machines_(Make()) {
    kubernetes_.Ask({.method = "POST",
                     .path = "/secrets",
                     .body = R"({"metadata": {"name": "espalier-join"}})"});
  }

  std::unique_ptr<MachineProvider> Make(const std::string& secret = "espalier-join",
                                        double overdue_s = 3600) {
    const PodShape shape{.pool = "vision",
                         .image = "torch:2",
                         .agent_image = "",
                         .bundle = "/opt/espalier",
                         .grace_s = 45};
    return KubernetesMachines(kubernetes_.server(),
                              {.pool = "vision",
                               .made_from = *PodTemplate(shape, ""),
                               .secret = secret,
                               .grace_s = 45,
                               .overdue_s = overdue_s},
                              {});
  }
  static MachineOrder Order(const std::string& node) {
    return {.key = "espalier.01.23." + node + ".ab",
            .node = node,
            .command = std::vector<std::string>{"tuner", "agent", "--name", node},
            .log = ""};
  }
  void StartAndAwait(const std::string& node) {
    ASSERT_TRUE(machines_->Request(Order(node)).ok());
    ASSERT_TRUE(kubernetes_.Runs(node, kPatience_s));
  }
  std::vector<Machine> List() {
    const auto listed = machines_->List("espalier.01.");
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.ok() ? *listed : std::vector<Machine>();
  }

  SmallKubernetes kubernetes_;
  std::unique_ptr<MachineProvider> machines_;
};

TEST_F(KubernetesMachinesTest, AreMadeListedAndDeleted) {
  StartAndAwait("pool-1");
  const auto made = kubernetes_.Requests("POST /pods");
  ASSERT_THAT(made, SizeIs(1));
  EXPECT_EQ(made[0].content_type, "application/json");
  const std::vector<Machine> there = List();
  ASSERT_THAT(there, SizeIs(1));
  EXPECT_EQ(there[0].key, "espalier.01.23.pool-1.ab");
  EXPECT_EQ(there[0].state, MachineState::kRunning);
  EXPECT_EQ(kubernetes_.Requests("GET")[0].path,
            "/pods?labelSelector=espalier.dev%2Fpool%3Dvision&limit=500");

  kubernetes_.LoseMachine();  // it would end at once
  ASSERT_TRUE(machines_->Release(there[0], Leave::kInTime).ok());
  EXPECT_EQ(kubernetes_.Requests("DELETE")[0].path, "/pods/espalier.01.23.pool-1.ab");
  EXPECT_EQ(kubernetes_.Requests("DELETE")[0].body,
            R"({"apiVersion":"v1","gracePeriodSeconds":45,"kind":"DeleteOptions",)"
            R"("preconditions":{"uid":")" +
                there[0].id + R"("}})");
  EXPECT_THAT(List(), ElementsAre(Field(&Machine::state, MachineState::kEnding)));
  ASSERT_TRUE(machines_->Release(there[0], Leave::kNow).ok());
  EXPECT_THAT(kubernetes_.Requests("DELETE")[1].body, HasSubstr("\"gracePeriodSeconds\":0"));
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(KubernetesMachinesTest, OneThatIsThereAlreadyIsThere) {
  ASSERT_TRUE(machines_->Request(Order("pool-1")).ok());
  EXPECT_TRUE(machines_->Request(Order("pool-1")).ok());
  EXPECT_EQ(kubernetes_.Joined("pool-1"), 1);
}

TEST_F(KubernetesMachinesTest, AnotherOfTheSameNameIsLeftAlone) {
  ASSERT_TRUE(machines_->Request(Order("pool-1")).ok());
  Machine machine = List().at(0);
  machine.id = "uid-of-before";
  EXPECT_TRUE(machines_->Release(machine, Leave::kNow).ok());
  EXPECT_THAT(kubernetes_.Nodes(), ElementsAre(Pair("pool-1", 1)));
  machine.key = "espalier.01.23.pool-2.ab";
  EXPECT_TRUE(machines_->Release(machine, Leave::kNow).ok()) << "one that is gone is no error";
}

TEST_F(KubernetesMachinesTest, AreListedPageByPageAndAgainWhereThatExpires) {
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(machines_->Request(Order("pool-" + std::to_string(i))).ok());
  }
  MachineOrder other = Order("pool-9");
  other.key = "espalier.99.23.pool-9.ab";
  ASSERT_TRUE(machines_->Request(other).ok());
  kubernetes_.SetPage(2);
  EXPECT_THAT(List(), SizeIs(5)) << "that of another pool's directory is not ours";
  EXPECT_THAT(kubernetes_.Requests("GET /pods"), SizeIs(3));
  const std::string next =
      "GET /pods?labelSelector=espalier.dev%2Fpool%3Dvision&limit=500&continue=";
  kubernetes_.SetFault(next, {.code = 410, .message = "too old", .reason = "Expired"});
  std::set<std::string> keys;
  for (const Machine& machine : List()) keys.insert(machine.key);
  EXPECT_THAT(keys, SizeIs(5));
  // What cannot be told for sure is an error, not less.
  kubernetes_.SetFault(next, {.code = 410, .message = "too old", .reason = "Expired", .times = 3});
  EXPECT_TRUE(absl::IsOutOfRange(machines_->List("espalier.01.").status()));
}

TEST_F(KubernetesMachinesTest, ThoseThatHaveEndedAreToldOfAndRemoved) {
  StartAndAwait("pool-1");
  StartAndAwait("pool-2");
  kubernetes_.SetStatus("pool-1", R"({"phase": "Failed", "reason": "Evicted",
                                      "message": "The node was low on resource: memory."})");
  const std::vector<Machine> there = List();
  ASSERT_THAT(there, SizeIs(2));
  EXPECT_EQ(there[0].state, MachineState::kEnded);
  EXPECT_EQ(there[0].reason, "Evicted: The node was low on resource: memory.");
  EXPECT_THAT(kubernetes_.Nodes(), ElementsAre(Pair("pool-2", 1)));
}

// As when its machine is lost: the kubelet that would confirm it is gone.
TEST_F(KubernetesMachinesTest, ThoseWhoseEndNobodyConfirmsAreRemoved) {
  StartAndAwait("pool-1");
  kubernetes_.LoseMachine();
  ASSERT_TRUE(machines_->Release(List().at(0), Leave::kInTime).ok());
  EXPECT_THAT(List(), SizeIs(1));
  EXPECT_THAT(List(), SizeIs(1));
  EXPECT_THAT(kubernetes_.Requests("DELETE"), SizeIs(1)) << "it has its time";
  machines_ = Make("espalier-join", /*overdue_s=*/0);
  List();
  while (!List().empty()) {
  }
  EXPECT_THAT(kubernetes_.Requests("DELETE").back().body, HasSubstr("\"gracePeriodSeconds\":0"));
}

TEST_F(KubernetesMachinesTest, WhyOneIsRefusedIsToldInTheSameWordsForAll) {
  for (const char* node : {"pool-1", "pool-2"}) {
    const MachineOrder order = Order(node);
    kubernetes_.SetFault("POST /pods",
                         {.code = 403,
                          .message = "pods \"" + order.key + "\" is forbidden: exceeded quota: few",
                          .reason = "Forbidden"});
    EXPECT_EQ(machines_->Request(order),
              absl::PermissionDeniedError("the pod is forbidden: exceeded quota: few"));
  }
}

TEST_F(KubernetesMachinesTest, TheTokenGoesIntoTheSecretAlone) {
  const ScratchFolder folder;
  ASSERT_TRUE(WritePrivateFile(folder.File("token"), "of-agents\n").ok());
  ASSERT_TRUE(WritePrivateFile(folder.File("ca"), "PEM\n").ok());
  MachineOrder order = Order("pool-1");
  order.token_file = folder.File("token");
  order.tls_ca_file = folder.File("ca");
  ASSERT_TRUE(machines_->Request(order).ok());
  EXPECT_THAT(
      kubernetes_.Ask({.method = "GET", .path = "/secrets/espalier-join"}),
      HasSubstr(absl::StrCat(R"("data":{"ca.pem":")", absl::Base64Escape("PEM\n"), R"(","token":")",
                             absl::Base64Escape("of-agents\n"), R"("})")));
  const auto patched = kubernetes_.Requests("PATCH");
  ASSERT_THAT(patched, SizeIs(1));
  EXPECT_EQ(patched[0].content_type, "application/merge-patch+json");
  EXPECT_EQ(patched[0].path, "/secrets/espalier-join");
  const std::string pod = kubernetes_.Requests("POST /pods").at(0).body;
  EXPECT_THAT(
      pod, AllOf(HasSubstr(R"({"name":"espalier-join","secret":{"secretName":"espalier-join"}})"),
                 ::testing::Not(HasSubstr("of-agents"))));
  EXPECT_EQ(Make("missing")->Request(order),
            absl::NotFoundError("secrets \"missing\" not found: make it, empty, by kubectl create "
                                "secret generic missing --namespace " +
                                kubernetes_.server().space));
}

}  // namespace
}  // namespace espalier
