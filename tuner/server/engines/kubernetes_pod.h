#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/server/engines/machine_provider.h"

namespace espalier {

// Labels by which the pods of a pool are known.
inline constexpr char kPodPoolLabel[] = "espalier.dev/pool";
inline constexpr char kPodNodeLabel[] = "espalier.dev/node";

// Where an agent in a pod finds what is its own.
inline constexpr char kPodWorkFolder[] = "/var/lib/espalier";
inline constexpr char kPodTokenFile[] = "/run/espalier/token";
inline constexpr char kPodTlsCaFile[] = "/run/espalier/ca.pem";

// What all pods of a pool have in common. One container, "agent", runs the agent.
struct PodShape {
  std::string pool;
  std::string image;        // of the container
  std::string agent_image;  // that has the agent; where it is another one, its bundle is copied
  std::string bundle;       // its folder there, and in the container
  double grace_s = 0;       // between SIGTERM and the end
  std::string service_account{};
  std::string image_pull_policy{};
  std::map<std::string, std::string> resources{};  // requests, which are also the limits
  std::vector<std::string> node_selector{};        // KEY=VALUE
  std::vector<std::string> tolerations{};          // KEY[=VALUE][:EFFECT]
};

// A pod without a name and a command, in JSON: `user_pod`, which is such a text or empty, and ours
// merged into it. What the agent relies on stands over what the user says. InvalidArgument names
// the option.
absl::StatusOr<std::string> PodTemplate(const PodShape& shape, const std::string& user_pod);

// The pod of an order, in JSON. The secret of that name has what the order's files hold, as "token"
// and "ca.pem".
std::string PodOf(const std::string& pod_template, const std::string& secret,
                  const MachineOrder& order);

struct ListedPod {
  Machine machine;
  bool deleted = false;  // it is to end, within its grace
};
struct PodPage {
  std::vector<ListedPod> pods;
  std::string next;  // from where the list goes on; empty: that was all
};

// A part of a list of pods, as the API server gives it.
absl::StatusOr<PodPage> ReadPods(const std::string& body);

}  // namespace espalier
