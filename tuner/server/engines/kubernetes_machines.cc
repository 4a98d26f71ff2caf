#include "tuner/server/engines/kubernetes_machines.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/private_files.h"
#include "spdlog/spdlog.h"
#include "tuner/server/engines/kubernetes_pod.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

constexpr double kCallLimit_s = 15;
constexpr int kPage = 500;     // pods of one answer
constexpr int kMostLists = 3;  // that expire while they are read

// Pods of one container each, known by their names, which the API server gives out once at a time.
class KubernetesProvider final : public MachineProvider {
 public:
  KubernetesProvider(ApiServer server, PoolOfPods pods, EngineCapabilities capabilities)
      : api_(std::move(server), kCallLimit_s),
        pods_(std::move(pods)),
        capabilities_(capabilities) {}

  EngineCapabilities capabilities() const override { return capabilities_; }

  absl::Status Request(const MachineOrder& order) override {
    ESPALIER_RETURN_IF_ERROR(BringFiles(order));
    const absl::Status made = api_.Ask({.method = "POST",
                                        .path = "/pods",
                                        .body = PodOf(pods_.made_from, pods_.secret, order)})
                                  .status();
    if (absl::IsAlreadyExists(made)) return absl::OkStatus();
    return WithoutKey(made, order.key);
  }

  absl::Status Release(const Machine& machine, Leave leave) override {
    return WithoutKey(Delete(machine, leave == Leave::kNow ? 0 : pods_.grace_s), machine.key);
  }

  // As it is in the store, not as a cache of the server's has it. Pods that have ended are told of
  // and removed, and so are those whose end nobody confirms, as when their machine is lost.
  absl::StatusOr<std::vector<Machine>> List(const std::string& key_prefix) override {
    ESPALIER_ASSIGN_OR_RETURN(const std::vector<ListedPod> pods, ReadAll());
    std::map<std::string, Time> deleted_since;
    std::vector<Machine> machines;
    for (const ListedPod& pod : pods) {
      const Machine& machine = pod.machine;
      if (!machine.key.starts_with(key_prefix)) continue;
      machines.push_back(machine);
      bool remove = machine.state == MachineState::kEnded;
      if (pod.deleted) {
        const auto before = deleted_since_.find(machine.id);
        const Time since = before == deleted_since_.end() ? Now() : before->second;
        deleted_since.emplace(machine.id, since);
        remove = remove || SecondsBetween(since, Now()) > pods_.overdue_s;
      }
      if (remove) Remove(machine);
    }
    deleted_since_ = std::move(deleted_since);
    return machines;
  }

 private:
  absl::StatusOr<std::vector<ListedPod>> ReadAll() {
    absl::StatusOr<std::vector<ListedPod>> pods = ReadOnce();
    for (int i = 1; i < kMostLists && absl::IsOutOfRange(pods.status()); ++i) pods = ReadOnce();
    return pods;
  }

  absl::StatusOr<std::vector<ListedPod>> ReadOnce() {
    const std::string path =
        absl::StrCat("/pods?labelSelector=", InQuery(absl::StrCat(kPodPoolLabel, "=", pods_.pool)),
                     "&limit=", kPage);
    std::vector<ListedPod> pods;
    std::string next;
    do {
      ESPALIER_ASSIGN_OR_RETURN(
          const std::string body,
          api_.Ask(
              {.method = "GET",
               .path = next.empty() ? path : absl::StrCat(path, "&continue=", InQuery(next))}));
      ESPALIER_ASSIGN_OR_RETURN(const PodPage page, ReadPods(body));
      pods.insert(pods.end(), page.pods.begin(), page.pods.end());
      next = page.next;
    } while (!next.empty());
    return pods;
  }

  // The files that the agent is to find, in the secret that is mounted there. It is only ever
  // written: that is a right on this one secret.
  absl::Status BringFiles(const MachineOrder& order) {
    Json files = Json::object();
    if (!order.token_file.empty())
      files["token"] = absl::Base64Escape(TextOfFile(order.token_file));
    if (!order.tls_ca_file.empty())
      files["ca.pem"] = absl::Base64Escape(TextOfFile(order.tls_ca_file));
    if (files.empty()) return absl::OkStatus();
    const absl::Status written = api_.Ask({.method = "PATCH",
                                           .path = "/secrets/" + pods_.secret,
                                           .body = Json{{"data", files}}.dump(),
                                           .is_patch = true})
                                     .status();
    if (!absl::IsNotFound(written)) return written;
    return absl::NotFoundError(absl::StrCat(written.message(),
                                            ": make it, empty, by kubectl create secret generic ",
                                            pods_.secret, " --namespace ", api_.server().space));
  }

  // That pod, and not another that has its name by now.
  absl::Status Delete(const Machine& machine, double grace_s) {
    const absl::Status deleted =
        api_.Ask({.method = "DELETE",
                  .path = "/pods/" + machine.key,
                  .body = Json{{"apiVersion", "v1"},
                               {"kind", "DeleteOptions"},
                               {"gracePeriodSeconds", static_cast<std::int64_t>(grace_s)},
                               {"preconditions", {{"uid", machine.id}}}}
                              .dump()})
            .status();
    if (absl::IsNotFound(deleted) || absl::IsAborted(deleted)) return absl::OkStatus();
    return deleted;
  }

  void Remove(const Machine& machine) {
    const absl::Status removed = Delete(machine, 0);
    if (removed.ok()) {
      spdlog::info("event=pod_removed pod=\"{}\" node=\"{}\"", machine.key, machine.host);
      not_removed_.erase(machine.id);
    } else if (not_removed_.insert(machine.id).second) {
      spdlog::warn("event=pod_not_removed pod=\"{}\" error=\"{}\"", machine.key,
                   absl::StrReplaceAll(removed.message(), {{"\"", "'"}}));
    }
  }

  // The same trouble is told in the same words for each pod.
  static absl::Status WithoutKey(const absl::Status& status, const std::string& key) {
    if (status.ok()) return status;
    return absl::Status(
        status.code(),
        absl::StrReplaceAll(status.message(), {{absl::StrCat("pods \"", key, "\""), "the pod"},
                                               {absl::StrCat("Pod \"", key, "\""), "the pod"}}));
  }

  KubernetesApi api_;
  const PoolOfPods pods_;
  const EngineCapabilities capabilities_;
  std::map<std::string, Time> deleted_since_;  // by id: pods that are to end, since we know
  std::set<std::string> not_removed_;          // by id: of which that was told
};

}  // namespace

std::unique_ptr<MachineProvider> KubernetesMachines(ApiServer server, PoolOfPods pods,
                                                    EngineCapabilities capabilities) {
  return std::make_unique<KubernetesProvider>(std::move(server), std::move(pods), capabilities);
}

}  // namespace espalier
