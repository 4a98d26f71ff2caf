#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/host_port.h"
#include "base/private_files.h"
#include "spdlog/spdlog.h"
#include "tuner/core/state/step.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/kubernetes_api.h"
#include "tuner/server/engines/kubernetes_lease.h"
#include "tuner/server/engines/kubernetes_machines.h"
#include "tuner/server/engines/kubernetes_pod.h"
#include "tuner/server/engines/reconciling_engine.h"

namespace espalier::engines {

namespace {

constexpr double kEndSlack_s = 15;      // for an agent to end, after its notice
constexpr double kOverdueSlack_s = 15;  // for a kubelet to say that a pod has ended
constexpr double kTurnPace_s = 1;
constexpr std::size_t kMostPoolName = 50;
constexpr std::size_t kHolderBytes = 4;

// A reconciling engine for which one of several services is elected.
class KubernetesEngine final : public Engine {
 public:
  struct Plan {
    ApiServer server;
    KubernetesLease::Options lease;
    std::string address;  // where pods reach the service; empty: as it is told itself
    PoolOfPods pods;
    EngineCapabilities capabilities;
  };

  KubernetesEngine(Plan plan, NodeAgents agents)
      : plan_(std::move(plan)), agents_(std::move(agents)) {}

  EngineCapabilities capabilities() const override { return plan_.capabilities; }

  absl::Status AwaitTurn(const std::function<bool(double seconds)>& wait) override {
    lease_.emplace(plan_.server, plan_.lease);
    for (std::string told; true;) {
      const absl::StatusOr<bool> taken = lease_->Take();
      if (taken.ok() && *taken) break;
      // What does not pass by itself ends it.
      if (!taken.ok() && !absl::IsUnavailable(taken.status()) &&
          !absl::IsDeadlineExceeded(taken.status()) && !absl::IsResourceExhausted(taken.status())) {
        return absl::Status(taken.status().code(),
                            absl::StrCat("--engine kubernetes: ", taken.status().message()));
      }
      const std::string why = taken.ok()
                                  ? absl::StrCat("another service has it: ", lease_->holder())
                                  : absl::StrReplaceAll(taken.status().message(), {{"\"", "'"}});
      if (why != told)
        spdlog::info("event=lease_waits lease=\"{}\" reason=\"{}\"", plan_.lease.name, why);
      told = why;
      if (!wait(std::min(kTurnPace_s, plan_.lease.duration_s))) {
        return absl::CancelledError("interrupted while it waited for its turn");
      }
    }
    spdlog::info("event=lease_taken lease=\"{}\" holder=\"{}\"", plan_.lease.name,
                 plan_.lease.holder);
    lease_->Keep([name = plan_.lease.name](const std::string& why) {
      spdlog::error(
          "event=lease_lost lease=\"{}\" reason=\"{}\" text=\"another service may lead this "
          "pool now: this one ends at once\"",
          name, absl::StrReplaceAll(why, {{"\"", "'"}}));
      spdlog::default_logger()->flush();
      std::_Exit(EXIT_FAILURE);
    });
    return ShareTurn();
  }

  std::string election() const override {
    return absl::StrCat(plan_.server.address, " ", plan_.server.space, " ", plan_.lease.name);
  }

  absl::Status ShareTurn() override {
    ESPALIER_ASSIGN_OR_RETURN(NodeDirectory directory, NodeDirectory::Open(agents_.directory));
    engine_ = std::make_unique<ReconcilingEngine>(
        KubernetesMachines(plan_.server, plan_.pods, plan_.capabilities), agents_,
        std::move(directory), MachineTimes{.end_grace_s = 2 * plan_.pods.grace_s});
    return absl::OkStatus();
  }

  void Open(const std::string& grpc_address, const std::string& http_address) override {
    if (plan_.address.empty()) return engine_->Open(grpc_address, http_address);
    const absl::StatusOr<HostPort> http = ParseHostPort(http_address);
    const std::string host = ParseHostPort(plan_.address)->host;
    engine_->Open(plan_.address, http.ok() ? HostPort{host, http->port}.text() : http_address);
  }
  void StartNode(const std::string& name) override { engine_->StartNode(name); }
  void ReleaseNode(const std::string& name) override { engine_->ReleaseNode(name); }
  void NodeJoined(const std::string& name) override { engine_->NodeJoined(name); }
  std::vector<std::string> Troubles() const override { return engine_->Troubles(); }
  void Stop() override { engine_->Stop(); }
  void Leave() override { engine_->Leave(); }

 private:
  const Plan plan_;
  const NodeAgents agents_;
  std::optional<KubernetesLease> lease_;       // given back after the engine has ended
  std::unique_ptr<ReconcilingEngine> engine_;  // once it is our turn
};

absl::Status Needs(const char* option, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("option \"", option, "\" needs ", what));
}

absl::StatusOr<std::string> PoolName(const OptionValues& options) {
  const std::string pool = options.Text("pool").empty() ? "espalier" : options.Text("pool");
  const bool fits =
      pool.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos &&
      pool.front() != '-' && pool.back() != '-' && pool.size() <= kMostPoolName;
  if (fits) return pool;
  return Needs("pool", absl::StrCat("small letters, digits and hyphens, ", kMostPoolName,
                                    " at most, got \"", pool, "\""));
}

std::string TextOr(const OptionValues& options, const char* name, const std::string& otherwise) {
  const std::string text = options.Text(name);
  return text.empty() ? otherwise : text;
}

PodShape ShapeOf(const OptionValues& options, const std::string& pool, double grace_s) {
  PodShape shape{.pool = pool,
                 .image = options.Text("image"),
                 .agent_image = options.Text("agent_image"),
                 .bundle = TextOr(options, "bundle", "/opt/espalier"),
                 .grace_s = grace_s,
                 .service_account = options.Text("service_account"),
                 .image_pull_policy = options.Text("image_pull_policy"),
                 .node_selector = options.Texts("node_selector"),
                 .tolerations = options.Texts("toleration")};
  for (const auto& [resource, quantity] :
       {std::pair{std::string("cpu"), options.Text("cpus")},
        {"memory", options.Text("memory")},
        {TextOr(options, "gpu_resource", "nvidia.com/gpu"), options.Text("gpus")}}) {
    if (!quantity.empty() && quantity != "0") shape.resources[resource] = quantity;
  }
  return shape;
}

// Where pods reach the service. In a pod, its own name says nothing to others.
absl::StatusOr<std::string> AddressOf(const OptionValues& options) {
  std::string address = options.Text("address");
  if (address.empty() && options.Text("server").empty()) {
    return Needs("address", "HOST:PORT, the Service by which pods reach this service");
  }
  if (!address.empty()) ESPALIER_RETURN_IF_ERROR(ParseHostPort(address).status());
  return address;
}

absl::StatusOr<PoolOfPods> PodsOf(const OptionValues& options) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string pool, PoolName(options));
  const double grace_s = options["notice_s"] + kEndSlack_s;
  if (options.Text("image").empty()) return Needs("image", "the container image of the pods");
  std::string user_pod;
  if (const std::string file = options.Text("pod_template"); !file.empty()) {
    user_pod = TextOfFile(file);
    if (user_pod.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("option \"pod_template\": the file \"", file, "\" cannot be read"));
    }
  }
  ESPALIER_ASSIGN_OR_RETURN(std::string made_from,
                            PodTemplate(ShapeOf(options, pool, grace_s), user_pod));
  return PoolOfPods{.pool = pool,
                    .made_from = std::move(made_from),
                    .secret = TextOr(options, "secret", pool + "-join"),
                    .grace_s = grace_s,
                    .overdue_s = grace_s + kOverdueSlack_s};
}

std::string OwnName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return absl::StrCat(name, "_", RandomHexadecimal(kHolderBytes));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeKubernetes(const OptionValues& options,
                                                       const NodeAgents& agents) {
  KubernetesEngine::Plan plan;
  ESPALIER_ASSIGN_OR_RETURN(plan.pods, PodsOf(options));
  ESPALIER_ASSIGN_OR_RETURN(plan.server, FindApiServer({.address = options.Text("server"),
                                                        .ca_file = options.Text("ca"),
                                                        .token_file = options.Text("token"),
                                                        .space = options.Text("namespace")}));
  ESPALIER_ASSIGN_OR_RETURN(plan.address, AddressOf(options));
  plan.lease = {.name = TextOr(options, "lease", plan.pods.pool),
                .holder = OwnName(),
                .duration_s = options["lease_s"]};
  plan.capabilities = {.notice_s = options["notice_s"],
                       .start_s = 10,
                       .queue_s = options["queue_s"],
                       .most_nodes = kMaxEngineNodes,
                       .elsewhere = plan.address.empty()};
  NodeAgents pods = agents;
  pods.executable =
      TextOr(options, "agent", TextOr(options, "bundle", "/opt/espalier") + "/bin/tuner");
  pods.stop_notice_s = options["notice_s"];
  pods.paths = MachinePaths{
      .directory = kPodWorkFolder, .token_file = kPodTokenFile, .tls_ca_file = kPodTlsCaFile};
  // Their notice is SIGTERM.
  for (const std::string& word : NoticeArguments(agents, 0)) pods.arguments.push_back(word);
  const std::vector<std::string> more = options.Texts("agent_argument");
  pods.arguments.insert(pods.arguments.end(), more.begin(), more.end());
  const bool shared = std::any_of(more.begin(), more.end(), [](const std::string& word) {
    return word.starts_with("--shared-dir");
  });
  if (!shared) {
    spdlog::warn(
        "event=checkpoints_in_pods text=\"checkpoints go with the pods: a study that is stopped "
        "cannot be resumed once its pods have gone. Want a volume that all pods see, and "
        "agent_argument=--shared-dir=FOLDER of it\"");
  }
  return std::make_unique<KubernetesEngine>(std::move(plan), std::move(pods));
}

PluginOption TextOption(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .text = true};
}

PluginOption TextsOption(std::string_view name, std::string_view meaning) {
  return {.name = name, .meaning = meaning, .text = true, .repeated = true};
}

std::vector<PluginOption> KubernetesOptions() {
  return std::vector<PluginOption>{
      TextOption("image", "container image of the pods; needed"),
      TextOption("agent_image", "image that contains the agent, if `image` does not"),
      TextOption("bundle", "folder of the agent and its libraries in that image (/opt/espalier)"),
      TextOption("agent", "path of `tuner` in the pods (BUNDLE/bin/tuner)"),
      TextOption("address", "HOST:PORT of the Service by which pods reach this service"),
      TextOption("pool", "name of the pool, which pods carry as a label (espalier)"),
      TextOption("cpus", "CPUs of each pod, in Kubernetes' notation: 8, 500m"),
      TextOption("memory", "memory of each pod, in Kubernetes' notation: 64Gi"),
      TextOption("gpus", "GPUs of each pod"),
      TextOption("gpu_resource", "the cluster's resource name for GPUs (nvidia.com/gpu)"),
      TextsOption("node_selector", "LABEL=VALUE that the cluster's nodes must have"),
      TextsOption("toleration", "TAINT[=VALUE][:EFFECT] that pods tolerate"),
      TextOption("service_account",
                 "service account of the pods (none: trials have no rights in the cluster)"),
      TextOption("image_pull_policy", "Always, IfNotPresent or Never"),
      TextOption("pod_template", "JSON file with a Pod, to which all of this is added"),
      TextsOption("agent_argument", "a further argument for `tuner agent`, such as --spot"),
      TextOption("secret", "Secret that holds the agents' token for the pods (POOL-join)"),
      TextOption("lease", "Lease that decides which service leads the pool (POOL)"),
      TextOption("server", "API server, https://HOST:PORT (in a pod: the cluster's own)"),
      TextOption("ca", "PEM file with the API server's CA"),
      TextOption("token", "file with the token for the API server; read again for each call"),
      TextOption("namespace",
                 "namespace of all that Espalier creates (in a pod: its own; else default)"),
      {.name = "notice_s",
       .default_value = 30,
       .most = 86400,
       .meaning = "seconds that an agent gets to empty its node when its pod is deleted"},
      {.name = "queue_s",
       .default_value = 3600,
       .meaning = "seconds that a pod may stay pending before it is given up"},
      {.name = "lease_s",
       .default_value = 15,
       .least = 1,
       .most = 3600,
       .meaning = "seconds without renewal until another service may lead; its own ends before"}};
}

}  // namespace

PluginRow<Engine, NodeAgents> KubernetesRow() {
  return {{.name = "kubernetes",
           .summary = "nodes are Kubernetes pods that run an agent",
           .options = KubernetesOptions()},
          MakeKubernetes};
}

}  // namespace espalier::engines
