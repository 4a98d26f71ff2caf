#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/processes/agent_watch.h"
#include "trial_runner/agent/ranks/supervisor.h"

// agent_holder ADDRESS DIRECTORY [LEASE [watched]]: runs an agent until it is killed.
int main(int argc, char** argv) {
  if (const std::optional<int> code = espalier::RunAgentWatch(argc, argv)) return *code;
  if (const std::optional<int> code = espalier::RunRanks(argc, argv)) return *code;
  if (argc < 3 || argc > 5) return 2;
  espalier::AgentOptions options;
  options.service_address = argv[1];
  options.directory = argv[2];
  options.node_name = "held";
  options.watched = argc == 5;
  if (argc >= 4) options.replica_lease_s = std::atof(argv[3]);
  const auto agent = espalier::Agent::Start(options);
  if (!agent.ok()) {
    std::fprintf(stderr, "%s\n", agent.status().ToString().c_str());
    return 1;
  }
  while (true) pause();
}
