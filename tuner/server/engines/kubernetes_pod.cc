#include "tuner/server/engines/kubernetes_pod.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/json/parse_json.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

constexpr const char* kContainer = "agent";
constexpr const char* kWorkVolume = "espalier-work";
constexpr const char* kJoinVolume = "espalier-join";
constexpr const char* kJoinFolder = "/run/espalier";
constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kSharedMemoryVolume = "espalier-shm";
constexpr const char* kBundleVolume = "espalier-bundle";
constexpr const char* kBundleCopy = "/espalier-bundle";
constexpr std::size_t kMostReason = 300;

// ---- what pods are made of
// ------------------------------------------------------------------------

absl::StatusOr<Json> ReadUserPod(const std::string& text) {
  if (text.empty()) return Json::object();
  Json pod = ParseJson(text);
  const auto object_or_none = [&pod](const char* name) {
    return !pod.contains(name) || pod[name].is_object();
  };
  const bool fits = pod.is_object() && pod.value("kind", Json("Pod")) == "Pod" &&
                    object_or_none("metadata") && object_or_none("spec");
  if (!fits) {
    return absl::InvalidArgumentError(
        "option \"pod_template\" needs a file with a Pod as JSON: {\"metadata\": {...}, \"spec\": "
        "{...}}");
  }
  return pod;
}

// The container of that name, which is added where there is none.
Json& ContainerOf(Json& spec, const char* kind, const char* name) {
  Json& containers = spec[kind];
  if (containers.is_null()) containers = Json::array();
  for (Json& container : containers) {
    if (container.value("name", "") == name) return container;
  }
  containers.push_back({{"name", name}});
  return containers.back();
}

void AddMount(Json& container, const char* volume, const std::string& path, bool read_only) {
  Json mount = {{"name", volume}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  container["volumeMounts"].push_back(std::move(mount));
}

bool Mounts(const Json& container, const std::string& path) {
  const auto mounts = container.find("volumeMounts");
  return mounts != container.end() &&
         std::any_of(mounts->begin(), mounts->end(),
                     [&path](const Json& mount) { return mount.value("mountPath", "") == path; });
}

absl::StatusOr<Json> SelectorOf(const std::vector<std::string>& words) {
  Json selector = Json::object();
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("option \"node_selector\" needs LABEL=VALUE, got \"", word, "\""));
    }
    selector[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return selector;
}

absl::StatusOr<Json> TolerationOf(const std::string& word) {
  static const std::set<std::string> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  const std::size_t colon = word.rfind(':');
  const std::string taint = word.substr(0, colon);
  const std::size_t equals = taint.find('=');
  Json toleration = {{"key", taint.substr(0, equals)}, {"operator", "Exists"}};
  bool fits = !taint.empty() && equals != 0;
  if (equals != std::string::npos) {
    toleration["operator"] = "Equal";
    toleration["value"] = taint.substr(equals + 1);
  }
  if (colon != std::string::npos) {
    const std::string effect = word.substr(colon + 1);
    fits = fits && kEffects.contains(effect);
    toleration["effect"] = effect;
  }
  if (fits) return toleration;
  return absl::InvalidArgumentError(absl::StrCat(
      "option \"toleration\" needs TAINT[=VALUE][:EFFECT], where EFFECT is NoSchedule, "
      "PreferNoSchedule or NoExecute, got \"",
      word, "\""));
}

// What it may do, where the user's pod says nothing else: what needs no more than a usual user runs
// under this, as whichever user the image names.
void Restrict(Json& container) {
  Json& context = container["securityContext"];
  if (!context.is_object()) context = Json::object();
  bool privileged = context.value("privileged", Json(false)) == Json(true);
  const Json none;
  const Json& capabilities = context.contains("capabilities") ? context["capabilities"] : none;
  if (capabilities.is_object() && capabilities.contains("add")) {
    for (const Json& added : capabilities["add"]) {
      privileged |= added == Json("SYS_ADMIN") || added == Json("CAP_SYS_ADMIN");
    }
  }
  // The API server refuses it together with these.
  if (!privileged && !context.contains("allowPrivilegeEscalation")) {
    context["allowPrivilegeEscalation"] = false;
  }
  if (!privileged && !context.contains("capabilities")) {
    context["capabilities"] = {{"drop", Json::array({"ALL"})}};
  }
}

// Brings the bundle of another image into the container's, where it has the same path.
void AddBundle(const PodShape& shape, Json& spec) {
  spec["volumes"].push_back({{"name", kBundleVolume}, {"emptyDir", Json::object()}});
  Json& copy = ContainerOf(spec, "initContainers", kBundleVolume);
  copy["image"] = shape.agent_image;
  // Without the files' owners, which nobody may set without capabilities.
  copy["command"] = Json::array({"cp", "-dR", shape.bundle + "/.", kBundleCopy});
  if (!shape.image_pull_policy.empty()) copy["imagePullPolicy"] = shape.image_pull_policy;
  Restrict(copy);
  AddMount(copy, kBundleVolume, kBundleCopy, /*read_only=*/false);
  AddMount(ContainerOf(spec, "containers", kContainer), kBundleVolume, shape.bundle,
           /*read_only=*/true);
}

void SetContainer(const PodShape& shape, Json& spec) {
  Json& container = ContainerOf(spec, "containers", kContainer);
  container["image"] = shape.image;
  container.erase("args");
  Restrict(container);
  if (!shape.image_pull_policy.empty()) container["imagePullPolicy"] = shape.image_pull_policy;
  // Why it ended is in its last lines, which are told together with its exit code.
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  for (const auto& [resource, quantity] : shape.resources) {
    container["resources"]["requests"][resource] = quantity;
    container["resources"]["limits"][resource] = quantity;
  }
  spec["volumes"].push_back({{"name", kWorkVolume}, {"emptyDir", Json::object()}});
  AddMount(container, kWorkVolume, kPodWorkFolder, /*read_only=*/false);
  // Programs in Python hand batches from process to process there; a runtime's own has 64 MiB.
  if (!Mounts(container, kSharedMemory)) {
    spec["volumes"].push_back(
        {{"name", kSharedMemoryVolume}, {"emptyDir", {{"medium", "Memory"}}}});
    AddMount(container, kSharedMemoryVolume, kSharedMemory, /*read_only=*/false);
  }
}

absl::Status Merge(const PodShape& shape, Json& pod) {
  pod.erase("status");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  Json& labels = pod["metadata"]["labels"];
  labels["app.kubernetes.io/name"] = "espalier-agent";
  labels[kPodPoolLabel] = shape.pool;
  Json& spec = pod["spec"];
  spec["restartPolicy"] = "Never";
  spec["terminationGracePeriodSeconds"] = static_cast<std::int64_t>(std::ceil(shape.grace_s));
  // Its variables would say of a Service named "espalier" what trials take as said by us.
  spec["enableServiceLinks"] = false;
  if (!shape.service_account.empty()) {
    spec["serviceAccountName"] = shape.service_account;
  } else if (!spec.contains("serviceAccountName")) {
    spec["automountServiceAccountToken"] = false;  // trials need no rights in the cluster
  }
  Json& context = spec["securityContext"];
  if (!context.is_object()) context = Json::object();
  if (!context.contains("seccompProfile")) context["seccompProfile"] = {{"type", "RuntimeDefault"}};
  ESPALIER_ASSIGN_OR_RETURN(const Json selector, SelectorOf(shape.node_selector));
  if (!selector.empty()) spec["nodeSelector"].update(selector);
  for (const std::string& word : shape.tolerations) {
    ESPALIER_ASSIGN_OR_RETURN(Json toleration, TolerationOf(word));
    spec["tolerations"].push_back(std::move(toleration));
  }
  SetContainer(shape, spec);
  if (!shape.agent_image.empty() && shape.agent_image != shape.image) AddBundle(shape, spec);
  return absl::OkStatus();
}

// ---- what pods say
// --------------------------------------------------------------------------------

const Json& At(const Json& object, const char* name) {
  static const Json kNone;
  const auto at = object.find(name);
  return at == object.end() ? kNone : *at;
}

std::string TextAt(const Json& object, const char* name) {
  const Json& value = At(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string OneLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin)
      .substr(0, kMostReason);
}

// Why a container does not start, if that does not pass by itself. The same text for as long as it
// lasts: the kubelet's own alternates between trying and waiting.
std::string ObstacleOf(const Json& container) {
  static const std::set<std::string> kPull = {"ErrImagePull",        "ImagePullBackOff",
                                              "InvalidImageName",    "ErrImageNeverPull",
                                              "RegistryUnavailable", "ImageInspectError"};
  static const std::set<std::string> kUsual = {"", "ContainerCreating", "PodInitializing"};
  const Json& waiting = At(At(container, "state"), "waiting");
  const std::string reason = TextAt(waiting, "reason");
  if (kPull.contains(reason)) {
    return absl::StrCat("image \"", TextAt(container, "image"), "\" cannot be pulled");
  }
  if (kUsual.contains(reason)) return "";
  return absl::StrCat(reason, ": ", OneLine(TextAt(waiting, "message")));
}

std::string EndOf(const Json& container) {
  const Json& ended = At(At(container, "state"), "terminated");
  const Json& code = At(ended, "exitCode");
  if (!code.is_number_integer() || code == 0) return "";
  const std::string reason = TextAt(ended, "reason");
  std::string text = absl::StrCat("the agent has ended with exit code ", code.get<int>());
  if (!reason.empty() && reason != "Error") absl::StrAppend(&text, ", ", reason);
  if (const std::string message = OneLine(TextAt(ended, "message")); !message.empty()) {
    absl::StrAppend(&text, ": ", message);
  }
  return text;
}

std::string WhyPending(const Json& status) {
  for (const Json& condition : At(status, "conditions")) {
    const bool unschedulable = TextAt(condition, "type") == "PodScheduled" &&
                               TextAt(condition, "status") == "False" &&
                               TextAt(condition, "reason") == "Unschedulable";
    if (unschedulable) return "unschedulable: " + OneLine(TextAt(condition, "message"));
  }
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : At(status, kind)) {
      if (std::string why = ObstacleOf(container); !why.empty()) return why;
    }
  }
  return "";
}

std::string WhyEnded(const Json& status) {
  // Of the pod itself, such as Evicted.
  if (const std::string reason = TextAt(status, "reason"); !reason.empty()) {
    return absl::StrCat(reason, ": ", OneLine(TextAt(status, "message")));
  }
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : At(status, kind)) {
      if (std::string why = EndOf(container); !why.empty()) return why;
    }
  }
  return "";
}

// Whether the agent has ended, whatever other containers of the pod do.
bool AgentEnded(const Json& status) {
  const Json& containers = At(status, "containerStatuses");
  return std::any_of(containers.begin(), containers.end(), [](const Json& container) {
    return TextAt(container, "name") == kContainer &&
           At(At(container, "state"), "terminated").is_object();
  });
}

ListedPod ListedPodOf(const Json& pod) {
  const Json& metadata = At(pod, "metadata");
  const Json& status = At(pod, "status");
  const std::string phase = TextAt(status, "phase");
  ListedPod listed{.machine = {.key = TextAt(metadata, "name"),
                               .id = TextAt(metadata, "uid"),
                               .host = TextAt(At(pod, "spec"), "nodeName")}};
  listed.deleted = At(metadata, "deletionTimestamp").is_string();
  Machine& machine = listed.machine;
  if (phase == "Succeeded" || phase == "Failed" || AgentEnded(status)) {
    machine.state = MachineState::kEnded;
    machine.reason = WhyEnded(status);
  } else if (listed.deleted) {
    machine.state = MachineState::kEnding;
  } else if (phase == "Pending" || phase.empty()) {
    machine.state = MachineState::kPending;
    machine.reason = WhyPending(status);
  } else {
    machine.state = MachineState::kRunning;
  }
  return listed;
}

}  // namespace

absl::StatusOr<std::string> PodTemplate(const PodShape& shape, const std::string& user_pod) {
  ESPALIER_ASSIGN_OR_RETURN(Json pod, ReadUserPod(user_pod));
  try {
    ESPALIER_RETURN_IF_ERROR(Merge(shape, pod));
    return pod.dump();
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("option \"pod_template\": not what a Pod is made of: ", error.what()));
  }
}

std::string PodOf(const std::string& pod_template, const std::string& secret,
                  const MachineOrder& order) {
  Json pod = ParseJson(pod_template);
  Json& metadata = pod["metadata"];
  metadata["name"] = order.key;
  metadata["labels"][kPodNodeLabel] = order.node;
  Json& spec = pod["spec"];
  Json& container = ContainerOf(spec, "containers", kContainer);
  // A $(NAME) would stand for a variable.
  Json& command = container["command"] = Json::array();
  for (const std::string& word : order.command) {
    command.push_back(absl::StrReplaceAll(word, {{"$", "$$"}}));
  }
  if (!order.token_file.empty() || !order.tls_ca_file.empty()) {
    spec["volumes"].push_back({{"name", kJoinVolume}, {"secret", {{"secretName", secret}}}});
    AddMount(container, kJoinVolume, kJoinFolder, /*read_only=*/true);
  }
  return pod.dump();
}

absl::StatusOr<PodPage> ReadPods(const std::string& body) {
  const Json list = ParseJson(body);
  if (!list.is_object() || !At(list, "items").is_array()) {
    return absl::InternalError("the API server answers with what is no list of pods");
  }
  PodPage page;
  for (const Json& pod : list["items"]) {
    if (pod.is_object()) page.pods.push_back(ListedPodOf(pod));
  }
  page.next = TextAt(At(list, "metadata"), "continue");
  return page;
}

}  // namespace espalier
