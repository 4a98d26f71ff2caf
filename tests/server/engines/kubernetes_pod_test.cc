#include "tuner/server/engines/kubernetes_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace espalier {
namespace {

using Json = nlohmann::json;

PodShape Shape() {
  return {.pool = "vision",
          .image = "torch:2",
          .agent_image = "",
          .bundle = "/opt/espalier",
          .grace_s = 45};
}

const MachineOrder kOrder{
    .key = "espalier.01.23.pool-1.ab",
    .node = "pool-1",
    .command = std::vector<std::string>{"/opt/espalier/bin/tuner", "agent", "--name", "$(HOME)/x"},
    .log = ""};

Json Made(const PodShape& shape, const std::string& user_pod, const MachineOrder& order = kOrder) {
  const auto pod_template = PodTemplate(shape, user_pod);
  EXPECT_TRUE(pod_template.ok()) << pod_template.status();
  return Json::parse(PodOf(*pod_template, "vision-join", order));
}

std::string Refused(const PodShape& shape, const std::string& user_pod = "") {
  return std::string(PodTemplate(shape, user_pod).status().message());
}

TEST(PodOf, IsAPodOfOneAgent) {
  MachineOrder order = kOrder;
  order.token_file = "/data/join.token";
  PodShape shape = Shape();
  shape.resources = {{"cpu", "8"}, {"nvidia.com/gpu", "2"}};
  EXPECT_EQ(Made(shape, "", order), Json::parse(R"({
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
      "name": "espalier.01.23.pool-1.ab",
      "labels": {"app.kubernetes.io/name": "espalier-agent", "espalier.dev/pool": "vision",
                 "espalier.dev/node": "pool-1"}
    },
    "spec": {
      "restartPolicy": "Never",
      "terminationGracePeriodSeconds": 45,
      "enableServiceLinks": false,
      "automountServiceAccountToken": false,
      "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
      "containers": [{
        "name": "agent",
        "image": "torch:2",
        "command": ["/opt/espalier/bin/tuner", "agent", "--name", "$$(HOME)/x"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": "2"},
                      "limits": {"cpu": "8", "nvidia.com/gpu": "2"}},
        "volumeMounts": [{"name": "espalier-work", "mountPath": "/var/lib/espalier"},
                         {"name": "espalier-shm", "mountPath": "/dev/shm"},
                         {"name": "espalier-join", "mountPath": "/run/espalier", "readOnly": true}]
}],
      "volumes": [{"name": "espalier-work", "emptyDir": {}},
                  {"name": "espalier-shm", "emptyDir": {"medium": "Memory"}},
                  {"name": "espalier-join", "secret": {"secretName": "vision-join"}}]
}
})"));
}

TEST(PodOf, BringsTheAgentIntoAnImageThatDoesNotHaveIt) {
  PodShape shape = Shape();
  shape.agent_image = "espalier:0.1.0";
  shape.image_pull_policy = "Always";
  const Json spec = Made(shape, "")["spec"];
  EXPECT_EQ(spec["initContainers"], Json::parse(R"([{
    "name": "espalier-bundle", "image": "espalier:0.1.0", "imagePullPolicy": "Always",
    "command": ["cp", "-dR", "/opt/espalier/.", "/espalier-bundle"],
    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    "volumeMounts": [{"name": "espalier-bundle", "mountPath": "/espalier-bundle"}]
  }])"));
  EXPECT_EQ(spec["containers"][0]["image"], "torch:2");
  EXPECT_EQ(spec["containers"][0]["volumeMounts"].back(), Json::parse(R"(
    {"name": "espalier-bundle", "mountPath": "/opt/espalier", "readOnly": true})"));
  shape.agent_image = shape.image;
  EXPECT_FALSE(Made(shape, "")["spec"].contains("initContainers"));
}

TEST(PodOf, MayDoWhatThePodOfTheUserSays) {
  const Json spec = Made(Shape(), R"({"spec": {
    "securityContext": {"runAsUser": 10001, "seccompProfile": {"type": "Unconfined"}},
    "containers": [{"name": "agent", "securityContext": {
      "capabilities": {"add": ["SYS_PTRACE"]}, "readOnlyRootFilesystem": true}}]}})")["spec"];
  EXPECT_EQ(spec["securityContext"],
            Json::parse(R"({"runAsUser": 10001, "seccompProfile": {"type": "Unconfined"}})"));
  EXPECT_EQ(spec["containers"][0]["securityContext"], Json::parse(R"({
    "allowPrivilegeEscalation": false, "capabilities": {"add": ["SYS_PTRACE"]},
    "readOnlyRootFilesystem": true})"));
  const Json privileged = Made(Shape(), R"({"spec": {"containers": [
    {"name": "agent", "securityContext": {"privileged": true}}]}})")["spec"];
  EXPECT_EQ(privileged["containers"][0]["securityContext"], Json::parse(R"({"privileged": true})"));
}

TEST(PodOf, IsPutIntoThePodOfTheUser) {
  PodShape shape = Shape();
  shape.node_selector = {"gpu=a100"};
  shape.tolerations = {"spot", "gpu=yes:NoSchedule", "old:NoExecute"};
  shape.service_account = "trials";
  const Json pod = Made(shape, R"({
    "kind": "Pod",
    "metadata": {"name": "mine", "labels": {"team": "vision", "espalier.dev/pool": "mine"}},
    "spec": {
      "restartPolicy": "Always",
      "nodeSelector": {"zone": "a"},
      "imagePullSecrets": [{"name": "registry"}],
      "volumes": [{"name": "data", "hostPath": {"path": "/data"}}],
      "containers": [
        {"name": "logs", "image": "logs:1"},
        {"name": "agent", "args": ["x"], "env": [{"name": "A", "value": "b"}],
         "volumeMounts": [{"name": "data", "mountPath": "/dev/shm"}]}
      ]
    },
    "status": {"phase": "Running"}
  })");
  EXPECT_EQ(pod["metadata"]["name"], kOrder.key);
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(pod["metadata"]["labels"]["espalier.dev/pool"], "vision");
  EXPECT_FALSE(pod.contains("status"));
  const Json& spec = pod["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["nodeSelector"], Json::parse(R"({"zone": "a", "gpu": "a100"})"));
  EXPECT_EQ(spec["imagePullSecrets"], Json::parse(R"([{"name": "registry"}])"));
  EXPECT_EQ(spec["serviceAccountName"], "trials");
  EXPECT_FALSE(spec.contains("automountServiceAccountToken"));
  EXPECT_EQ(spec["tolerations"], Json::parse(R"([
    {"key": "spot", "operator": "Exists"},
    {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
    {"key": "old", "operator": "Exists", "effect": "NoExecute"}])"));
  ASSERT_EQ(spec["containers"].size(), 2u);
  EXPECT_EQ(spec["containers"][0], Json::parse(R"({"name": "logs", "image": "logs:1"})"));
  const Json& agent = spec["containers"][1];
  EXPECT_EQ(agent["env"], Json::parse(R"([{"name": "A", "value": "b"}])"));
  EXPECT_FALSE(agent.contains("args"));
  EXPECT_EQ(agent["volumeMounts"], Json::parse(R"([
    {"name": "data", "mountPath": "/dev/shm"},
    {"name": "espalier-work", "mountPath": "/var/lib/espalier"}])"));
}

TEST(PodTemplate, NamesTheOptionThatIsWrong) {
  EXPECT_THAT(Refused(Shape(), "apiVersion: v1"),
              ::testing::StartsWith("option \"pod_template\" needs a file with a Pod as JSON"));
  EXPECT_THAT(Refused(Shape(), R"({"kind": "Deployment", "spec": {}})"),
              ::testing::StartsWith("option \"pod_template\" needs a file with a Pod as JSON"));
  EXPECT_THAT(Refused(Shape(), R"({"spec": {"containers": {"name": "agent"}}})"),
              ::testing::StartsWith("option \"pod_template\": not what a Pod is made of"));
  PodShape shape = Shape();
  shape.tolerations = {"gpu:Sometimes"};
  EXPECT_THAT(Refused(shape), ::testing::EndsWith("got \"gpu:Sometimes\""));
  shape = Shape();
  shape.node_selector = {"gpu"};
  EXPECT_EQ(Refused(shape), "option \"node_selector\" needs LABEL=VALUE, got \"gpu\"");
}

// A machine of one pod with that status.
Machine Read(const std::string& status, const std::string& metadata = "") {
  const auto page =
      ReadPods(R"({"metadata": {}, "items": [{"metadata": {"name": "a", "uid": "u")" + metadata +
               R"(}, "spec": {"nodeName": "n1"}, "status": )" + status + "}]}");
  EXPECT_TRUE(page.ok() && page->pods.size() == 1);
  return page->pods.at(0).machine;
}

TEST(ReadPods, SaysWhatBecameOfEach) {
  const struct {
    const char* status;
    MachineState state;
    const char* reason;
  } kCases[] = {
      {R"({"phase": "Pending"})", MachineState::kPending, ""},
      {R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
           "reason": "Unschedulable", "message": "0/4 nodes: 4 Insufficient nvidia.com/gpu."}]})",
       MachineState::kPending, "unschedulable: 0/4 nodes: 4 Insufficient nvidia.com/gpu."},
      {R"({"phase": "Pending", "containerStatuses": [{"name": "agent", "image": "torch:9",
           "state": {"waiting": {"reason": "ErrImagePull", "message": "no such tag"}}}]})",
       MachineState::kPending, "image \"torch:9\" cannot be pulled"},
      {R"({"phase": "Pending", "initContainerStatuses": [{"name": "espalier-bundle",
           "image": "e:9", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
           "containerStatuses": [{"name": "agent",
           "state": {"waiting": {"reason": "PodInitializing"}}}]})",
       MachineState::kPending, "image \"e:9\" cannot be pulled"},
      {R"({"phase": "Pending", "containerStatuses": [{"name": "agent", "state": {"waiting":
           {"reason": "CreateContainerConfigError", "message": "no secret"}}}]})",
       MachineState::kPending, "CreateContainerConfigError: no secret"},
      {R"({"phase": "Running", "containerStatuses": [{"name": "agent", "state": {"running": {}}}]})",
       MachineState::kRunning, ""},
      {R"({"phase": "Running", "containerStatuses": [{"name": "logs", "state": {"running": {}}},
           {"name": "agent", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]})",
       MachineState::kEnded, "the agent has ended with exit code 137, OOMKilled"},
      {R"({"phase": "Failed", "containerStatuses": [{"name": "agent", "state": {"terminated":
           {"exitCode": 2, "reason": "Error", "message": "starts\ntuner agent: no token\n"}}}]})",
       MachineState::kEnded, "the agent has ended with exit code 2: tuner agent: no token"},
      {R"({"phase": "Failed", "reason": "NodeLost", "message": "gone"})", MachineState::kEnded,
       "NodeLost: gone"},
      {R"({"phase": "Succeeded"})", MachineState::kEnded, ""},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.status);
    const Machine machine = Read(c.status);
    EXPECT_EQ(machine.state, c.state);
    EXPECT_EQ(machine.reason, c.reason);
    EXPECT_EQ(machine.host, "n1");
  }
  EXPECT_EQ(
      Read(R"({"phase": "Running"})", R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")").state,
      MachineState::kEnding);
  EXPECT_FALSE(ReadPods("<html>").ok());
  EXPECT_FALSE(ReadPods(R"({"kind": "Status"})").ok());
}

}  // namespace
}  // namespace espalier
