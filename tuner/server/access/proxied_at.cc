#include "tuner/server/access/proxied_at.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace espalier {

bool ProxiedAt::Names(std::string_view host) const {
  return std::any_of(hosts.begin(), hosts.end(), [host](const std::string& each) {
    return absl::EqualsIgnoreCase(each, std::string(host));
  });
}

std::string_view ProxiedAt::Stripped(std::string_view target) const {
  if (prefix.empty() || !target.starts_with(prefix)) return target;
  const std::string_view rest = target.substr(prefix.size());
  if (rest.starts_with('/')) return rest;
  return rest.empty() || rest.starts_with('?') || rest.starts_with('#') ? "/" : target;
}

std::string ProxiedAt::BaseFrom(std::string_view target) const {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  // Without a slash at its end the last name of the prefix is taken for a page's.
  if (!prefix.empty() && path == prefix) return prefix.substr(prefix.rfind('/') + 1) + "/";
  const std::string_view own = Stripped(path);
  const auto slashes = std::count(own.begin(), own.end(), '/');
  std::string base;
  for (auto up = slashes; up > 1; --up) base += "../";
  return base;
}

}  // namespace espalier
