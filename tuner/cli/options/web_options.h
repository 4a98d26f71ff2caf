#pragma once

#include "base/status.h"
#include "tuner/server/access/proxied_at.h"

namespace espalier {

class CliCommand;

// How browsers reach the page by a proxy: --web-host and --web-prefix.
void AddProxyTo(CliCommand& command, ProxiedAt& proxied);
// With the hosts that the environment names (ESPALIER_WEB_HOST, by commas), where no option does.
// What can be no host of an address bar, or no path, is named with what would be right.
absl::StatusOr<ProxiedAt> ResolveProxy(ProxiedAt given);

}  // namespace espalier
