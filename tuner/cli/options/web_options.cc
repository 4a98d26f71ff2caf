#include "tuner/cli/options/web_options.h"

#include <fmt/format.h>

#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "tuner/cli/options/command.h"

namespace espalier {
namespace {

constexpr const char* kInPaths =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@%/";

}  // namespace

void AddProxyTo(CliCommand& command, ProxiedAt& proxied) {
  command
      .AddOption(
          "--web-host", proxied.hosts,
          "Name by which browsers reach the page through a proxy (default: ESPALIER_WEB_HOST)")
      .Repeated()
      .TypeName("HOST[:PORT]");
  command
      .AddOption("--web-prefix", proxied.prefix,
                 "Path that this proxy adds and does not take off again, such as /espalier")
      .TypeName("/PATH");
}

absl::StatusOr<ProxiedAt> ResolveProxy(ProxiedAt given) {
  std::string source = "--web-host";
  if (given.hosts.empty()) {
    source = "ESPALIER_WEB_HOST";
    given.hosts = absl::StrSplit(EnvironmentVariable("ESPALIER_WEB_HOST"), ',', absl::SkipEmpty());
  }
  for (const std::string& host : given.hosts) {
    if (host.empty() || host.find_first_of("/@?# ") != std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("{} \"{}\": must be HOST or HOST:PORT as in the browser's address bar, such "
                      "as hub.example.org",
                      source, host));
    }
  }
  const std::string& prefix = given.prefix;
  if (prefix.empty()) return given;
  const bool plain = prefix.find_first_not_of(kInPaths) == std::string::npos &&
                     prefix.find("//") == std::string::npos &&
                     (prefix + "/").find("/../") == std::string::npos;
  if (!prefix.starts_with('/') || prefix.ends_with('/') || !plain) {
    return absl::InvalidArgumentError(
        fmt::format("--web-prefix \"{}\": must be a path that begins with a slash and does not end "
                    "with one, such as /espalier",
                    prefix));
  }
  return given;
}

}  // namespace espalier
