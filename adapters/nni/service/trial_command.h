#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::nni {

// What TrialCommand makes of a trial's own variables.
struct TrialPlace {
  std::string experiment;
  std::string trial;
  std::int64_t sequence = 0;
  std::string service_url;        // where the front end reaches the service: http://host:port
  std::string channel_path;       // "/nni/v1/channel/..."
  std::string checkpoint_folder;  // absolute; empty: the agent's own
};

// The study's command: a shell that gives the trial what NNI's trials expect of their environment
// (docs/nni_protocol.md) and becomes `command`, which bash runs, or /bin/sh where there is no bash.
// Only the shell on the trial's own machine knows its folders and the agent's way to the service.
std::vector<std::string> TrialCommand(const std::string& command);

// A trial's environment for that command.
std::map<std::string, std::string> TrialVariables(const TrialPlace& place);

}  // namespace espalier::nni
