#pragma once

#include <string>
#include <vector>

namespace espalier {

// How somebody gets to see a page that this machine serves. Pure.

// What came with the login of the user who started us.
struct Login {
  std::string connection{};  // SSH_CONNECTION: both ends' addresses and ports; empty: not over SSH
  std::string user{};
  bool ends_here = true;  // that connection, and not at another machine from where we were started
  std::string machine{};  // how that one calls this machine
};

// The command that brings a loopback port of this machine to the one from where the user has logged
// in; empty where that is this one, or cannot be told. `host` and `port` are those of the page.
std::string ForwardingCommand(const std::string& host, int port, const Login& login);

// The commands that may open a page, the first that can be started does: those of the variable
// BROWSER, which is a list of commands between colons with %s for the address, or the desktop's,
// where there is a display.
std::vector<std::vector<std::string>> BrowserCommands(const std::string& browser, bool display,
                                                      const std::string& address);

}  // namespace espalier
