#include "tuner/cli/options/web_options.h"

#include <fmt/format.h>

#include "tuner/cli/options/command.h"

namespace espalier {
namespace {

constexpr const char* kInPaths =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@%/";

}  // namespace

void AddProxyTo(CliCommand& command, ProxiedAt& proxied) {
  command
      .AddOption("--web-host", proxied.hosts,
                 "Name under which browsers reach the page by a proxy, HOST or HOST:PORT")
      .Repeated()
      .TypeName("HOST[:PORT]");
  command
      .AddOption("--web-prefix", proxied.prefix,
                 "Path that this proxy adds and does not take off again, such as /espalier")
      .TypeName("/PATH");
}

absl::Status CheckProxy(const ProxiedAt& proxied) {
  for (const std::string& host : proxied.hosts) {
    if (host.empty() || host.find_first_of("/@?# ") != std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("--web-host \"{}\": must be HOST or HOST:PORT as in the browser's address "
                      "bar, such as hub.example.org",
                      host));
    }
  }
  const std::string& prefix = proxied.prefix;
  if (prefix.empty()) return absl::OkStatus();
  const bool plain = prefix.find_first_not_of(kInPaths) == std::string::npos &&
                     prefix.find("//") == std::string::npos &&
                     (prefix + "/").find("/../") == std::string::npos;
  if (!prefix.starts_with('/') || prefix.ends_with('/') || !plain) {
    return absl::InvalidArgumentError(
        fmt::format("--web-prefix \"{}\": must be a path that begins with a slash and does not end "
                    "with one, such as /espalier",
                    prefix));
  }
  return absl::OkStatus();
}

}  // namespace espalier
