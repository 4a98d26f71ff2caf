#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// How browsers reach the service by a proxy.
struct ProxiedAt {
  // Where they find it, HOST or HOST:PORT as in their address bar.
  std::vector<std::string> hosts{};
  // "/espalier": the path that the proxy adds and hands on; empty: it adds none, or takes it off.
  std::string prefix{};

  // Whether that, from a header Host or Origin, is one of the hosts.
  bool Names(std::string_view host) const;
  // A request's target as it would be without the proxy's path; as it is where it has none.
  std::string_view Stripped(std::string_view target) const;
  // From the target's path to where the service's begin, as browsers resolve it: "", "../../".
  std::string BaseFrom(std::string_view target) const;
};

}  // namespace espalier
