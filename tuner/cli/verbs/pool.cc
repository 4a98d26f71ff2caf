// `tuner pool`: the nodes, and the policy by which they are divided.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tuner/cli/connected_verb.h"
#include "tuner/cli/options/plugin_argument.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

struct PoolArguments {
  ServiceArguments service;
  std::string policy;
  bool json = false;
};

// "NVIDIA H200, spot, draining, goes in 40s": all that sets a node apart.
std::string NodeText(const v1::Node& node) {
  std::vector<std::string> parts;
  if (!node.gpu_type().empty()) parts.push_back(node.gpu_type());
  if (node.spot()) parts.emplace_back("spot");
  if (node.price_per_hour() > 0)
    parts.push_back(fmt::format("{:g} an hour", node.price_per_hour()));
  if (!node.connected()) parts.emplace_back("not connected");
  if (node.draining()) parts.emplace_back(node.holders_size() > 0 ? "draining" : "drained");
  if (node.draining() && node.drain_ends_at() > 0) {
    const double left_s = node.drain_ends_at() - Seconds(Now());
    parts.push_back(left_s > 0 ? "goes in " + FormatDuration(left_s) : "its time is up");
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// What is wrong between two nodes, and what to do.
std::string FaultText(const v1::NodeFault& fault) {
  const double ago_s = std::max(0.0, Seconds(Now()) - fault.at());
  const double left_s = std::max(0.0, fault.until() - Seconds(Now()));
  return fmt::format(
      "{} cannot reach {} at {}: {} ({} ago). No trial is placed on both for {} more: let TCP "
      "connections from {} to {} through, to the ports of its replicas (tuner agent --port-range), "
      "or give {} another --address",
      fault.from(), fault.to(), fault.address(), fault.error(), FormatDuration(ago_s),
      FormatDuration(left_s), fault.from(), fault.to(), fault.to());
}

void PrintPool(const v1::Pool& pool) {
  std::printf("%d of %d slots held\n", pool.slots_held(), pool.slots());
  if (!pool.policy().empty()) std::printf("policy %s\n", pool.policy().c_str());
  std::vector<std::vector<std::string>> rows = {{"node", "slot", "study", "trial", "process"}};
  for (const v1::Node& node : pool.nodes()) {
    for (int slot = 0; slot < node.slots(); ++slot) {
      std::vector<std::string> row = {node.name(), std::to_string(slot), "", "", ""};
      for (const v1::SlotHolder& holder : node.holders()) {
        if (holder.slot() != slot) continue;
        row[2] = holder.study();
        row[3] = std::to_string(holder.trial_number());
        row[4] = holder.pid() > 0           ? std::to_string(holder.pid())
                 : holder.replica_id() == 0 ? "its client's"
                                            : "starting";
      }
      rows.push_back(std::move(row));
    }
  }
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
  for (const v1::Node& node : pool.nodes()) {
    if (const std::string text = NodeText(node); !text.empty()) {
      std::printf("%s: %s\n", node.name().c_str(), text.c_str());
    }
    for (const v1::UnusableSlot& unusable : node.unusable()) {
      std::printf("%s: nothing is started on slot %d: %s\n", node.name().c_str(), unusable.slot(),
                  unusable.reason().c_str());
    }
    for (const v1::Gpu& gpu : node.gpus()) {
      std::printf("%s: %s, %.0f GiB (%s)\n", node.name().c_str(), gpu.name().c_str(),
                  static_cast<double>(gpu.memory_bytes()) / (1 << 30), gpu.uuid().c_str());
    }
  }
  for (const v1::NodeFault& fault : pool.faults()) std::puts(FaultText(fault).c_str());
  for (const std::string& warning : pool.warnings()) std::puts(warning.c_str());
}

absl::StatusOr<ExitCode> SetPolicy(Client& client, const PluginSpec& policy, bool json) {
  v1::SetPoolPolicyRequest request;
  request.set_name(policy.name);
  for (const auto& [option, value] : policy.options) {
    if (value.IsWord()) {
      return absl::InvalidArgumentError(
          fmt::format("policy \"{}\": option \"{}\" needs a number, got \"{}\"", policy.name,
                      option, value.Word()));
    }
    (*request.mutable_options())[option] = value.Number();
  }
  ESPALIER_ASSIGN_OR_RETURN(const v1::Pool pool, client.Call<api::SetPoolPolicy>(request));
  if (json) {
    PrintMessage(pool);
  } else {
    std::printf("the pool's policy is now %s\n", pool.policy().c_str());
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ShowPool(Client& client, bool json) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Pool pool, client.Call<api::GetPool>({}));
  json ? PrintMessage(pool) : PrintPool(pool);
  return ExitCode::kOk;
}

ExitCode ShowOrSetPool(PoolArguments& arguments) {
  if (arguments.policy.empty()) {
    return WithClient("pool", "", arguments.service,
                      [&](Client& client) { return ShowPool(client, arguments.json); });
  }
  const absl::StatusOr<PluginSpec> policy = ParsePlugin("--policy", arguments.policy);
  if (!policy.ok()) {
    return Fail("pool", ExitCode::kBadInput, std::string(policy.status().message()));
  }
  return WithClient("pool", "", arguments.service,
                    [&](Client& client) { return SetPolicy(client, *policy, arguments.json); });
}

}  // namespace

VerbAction AddPool(CliCommand& command) {
  auto a = std::make_shared<PoolArguments>();
  a->service.AddWithLocalRunTo(command);
  command
      .AddOption("--policy", a->policy,
                 "Set the policy that divides the pool's slots, NAME or NAME:option=value,...; it "
                 "is kept across restarts of the service, and recorded in its studies")
      .TypeName("POLICY");
  AddJson(command, a->json, "GET /api/pool sends it");
  command.AppendToFooter(PoliciesHelp());
  return [a] { return ShowOrSetPool(*a); };
}

}  // namespace espalier
