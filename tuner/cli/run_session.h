#pragma once

#include <cstdint>
#include <string>

#include "tuner/cli/exit_codes.h"
#include "tuner/cli/options/node_options.h"
#include "tuner/core/state/study.h"
#include "tuner/server/access/proxied_at.h"
#include "tuner/server/service.h"

namespace espalier {

struct RunArguments {
  std::string study_file;
  std::string directory;  // empty: espalier-runs/NAME
  NodeArguments node;
  std::string grpc_address = "127.0.0.1:0";
  std::string http_address = "127.0.0.1:0";
  ProxiedAt proxied{};
  std::string token_file;
  bool plaintext = false;  // also on addresses that other machines reach
  TrialTimeouts timeouts;
  OptunaOptions optuna{};
  std::string report;
  std::int64_t trials = 0;  // 0: as the study file says
  std::string like;         // empty: likewise
  bool memory = false;
  bool fresh = false;
  bool quiet = false;
  bool open = false;                 // its page, in the user's browser
  StartDashboard start_dashboard{};  // null: there is no dashboard
};

// Checks everything, then runs service and agent in this process until the study has ended or is
// interrupted. Resumes what an earlier run of the same study left in the directory, with the limits
// on trials and time that the study file has now.
ExitCode Run(const RunArguments& arguments);

}  // namespace espalier
