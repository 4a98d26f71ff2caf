// `tuner drain`: empties a node, or lets it take trials again.

#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

struct DrainArguments {
  ServiceArguments service;
  std::string node;
  bool undo = false;
  double within_s = 0;  // 0: trials may run to their end
};

absl::StatusOr<ExitCode> Drain(Client& client, const DrainArguments& arguments) {
  v1::DrainNodeRequest request;
  request.set_name(arguments.node);
  request.set_undo(arguments.undo);
  request.set_within_s(arguments.within_s);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Node node, client.Call<api::DrainNode>(request));
  if (!node.draining()) {
    std::printf("node %s takes trials again\n", node.name().c_str());
  } else if (arguments.undo) {
    std::printf("node %s is still draining: its own agent says that it goes away\n",
                node.name().c_str());
  } else if (node.holders_size() == 0) {
    std::printf("node %s is empty, and stays empty\n", node.name().c_str());
  } else {
    std::printf("node %s is draining; %s still held there\n", node.name().c_str(),
                Count(node.holders_size(), "slot").c_str());
  }
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddDrain(CliCommand& command) {
  auto a = std::make_shared<DrainArguments>();
  command.AddOption("node", a->node, "Name of the node, as `tuner pool` shows it")
      .Required()
      .TypeName("NODE");
  a->service.AddWithLocalRunTo(command);
  command
      .AddOption("--within", a->within_s,
                 "Seconds after which trials that are still there are shrunk, or paused with a "
                 "checkpoint (default: they may run to their end)")
      .NonNegative();
  command.AddFlag("--undo", a->undo, "Let the node take trials again");
  return [a] {
    return WithClient("drain", "", a->service, [a](Client& client) { return Drain(client, *a); });
  };
}

}  // namespace espalier
