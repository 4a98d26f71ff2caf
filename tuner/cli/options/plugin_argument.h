#pragma once

#include <string>

#include "base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

// NAME[:option=value,...], e.g. "asha:eta=3,min_steps=1". What the option means is the plug-in's
// affair. InvalidArgument says which part is wrong; `what` ("--policy") begins the message.
absl::StatusOr<PluginSpec> ParsePlugin(const std::string& what, const std::string& text);

// Whether there is such a policy, with such options.
absl::Status CheckPolicy(const PluginSpec& policy);

// For the end of a help text: the names that a policy may have, and a line on each, below a
// heading.
std::string PoliciesHelp(const std::string& heading = "Policies");

}  // namespace espalier
