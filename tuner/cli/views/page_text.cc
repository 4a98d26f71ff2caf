#include "tuner/cli/views/page_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace espalier {
namespace {

constexpr std::string_view kSshPort = "22";
constexpr std::size_t kEnds = 4;  // the client's address and port, then the server's

std::string Bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

std::string ForwardingCommand(const std::string& host, int port, const Login& login) {
  const std::vector<std::string> ends = absl::StrSplit(login.connection, ' ', absl::SkipEmpty());
  if (ends.size() != kEnds) return "";
  const std::string& server = ends[2];
  const std::string& server_port = ends[3];
  const std::string at_port = server_port == kSshPort ? "" : server_port;
  const std::string forward = fmt::format("ssh -N -L {0}:{1}:{0}", port, Bracketed(host));
  if (login.ends_here) {
    return fmt::format("{}{} {}@{}", forward, at_port.empty() ? "" : " -p " + at_port, login.user,
                       server);
  }
  return fmt::format("{} -J {}@{}{} {}@{}", forward, login.user, Bracketed(server),
                     at_port.empty() ? "" : ":" + at_port, login.user, login.machine);
}

std::vector<std::vector<std::string>> BrowserCommands(const std::string& browser, bool display,
                                                      const std::string& address) {
  constexpr std::string_view kAddress = "%s";
  std::vector<std::vector<std::string>> commands;
  const std::vector<std::string> entries = absl::StrSplit(browser, ':', absl::SkipWhitespace());
  for (const std::string& entry : entries) {
    std::vector<std::string> words = absl::StrSplit(entry, ' ', absl::SkipWhitespace());
    bool told = false;
    for (std::string& word : words) {
      told = told || word.find(kAddress) != std::string::npos;
      word = absl::StrReplaceAll(word, {{"%s", address}});
    }
    if (!told) words.push_back(address);
    commands.push_back(std::move(words));
  }
  if (display) commands.push_back({"xdg-open", address});
  return commands;
}

}  // namespace espalier
