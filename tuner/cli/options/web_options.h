#pragma once

#include "base/status.h"
#include "tuner/server/access/proxied_at.h"

namespace espalier {

class CliCommand;

// How browsers reach the page by a proxy: --web-host and --web-prefix.
void AddProxyTo(CliCommand& command, ProxiedAt& proxied);
// What can be no host of an address bar, or no path, is named with what would be right.
absl::Status CheckProxy(const ProxiedAt& proxied);

}  // namespace espalier
