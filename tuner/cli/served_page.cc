#include "tuner/cli/served_page.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/host_port.h"
#include "base/machine_address.h"
#include "trial_runner/agent/host_address.h"
#include "tuner/cli/views/page_text.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/engines/program_run.h"

namespace espalier {
namespace {

// A shell, which ends as soon as it has started the browser; whose child that then is, is the
// system's affair. It reads nothing but these words.
constexpr char kStart[] =
    "command -v \"$1\" >/dev/null || exit 127; \"$@\" </dev/null >/dev/null 2>&1 &";
constexpr double kStart_s = 10;

std::string UserName() {
  const passwd* user = getpwuid(getuid());
  return user != nullptr ? user->pw_name : fmt::format("{}", getuid());
}

Login LoginHere() {
  Login login{.connection = EnvironmentVariable("SSH_CONNECTION"),
              .user = UserName(),
              .machine = HostName()};
  const std::vector<std::string> ends = absl::StrSplit(login.connection, ' ');
  const std::vector<HostAddress> own = OwnAddresses();
  login.ends_here =
      ends.size() < 3 || std::any_of(own.begin(), own.end(), [&ends](const HostAddress& address) {
        return address.address == ends[2];
      });
  return login;
}

// "127.0.0.1:7078" of "http://127.0.0.1:7078/".
absl::StatusOr<ListenAddress> AddressIn(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return ParseListenAddress(url.substr(begin, url.find('/', begin) - begin));
}

// What was started shows it, or says itself why it cannot.
bool Start(const std::vector<std::string>& command) {
  std::vector<std::string> words = {"/bin/sh", "-c", kStart, "sh"};
  words.insert(words.end(), command.begin(), command.end());
  const absl::StatusOr<ProgramEnd> end = RunProgram({.command = words, .limit_s = kStart_s});
  return end.ok() && end->exit_code == 0;
}

}  // namespace

std::vector<std::string> PageLines(const ServedPage& page) {
  std::vector<std::string> lines = {page.url};
  if (page.needs_token) {
    lines.emplace_back(
        "asks for a token once: `tuner token create --role view --name NAME` makes one");
  }
  const absl::StatusOr<ListenAddress> address = AddressIn(page.url);
  if (!address.ok() || !address->loopback()) return lines;
  const std::string command = ForwardingCommand(address->host, address->port, LoginHere());
  if (!command.empty()) {
    lines.emplace_back("has the same address on your own machine, where you enter:");
    lines.push_back(command);
  }
  return lines;
}

bool OpenInBrowser(const std::string& verb, const ServedPage& page, const std::string& by_way_of) {
  const auto say = [&](const std::string& what) {
    std::fprintf(stderr, "tuner %s: %s\n", verb.c_str(), what.c_str());
    return false;
  };
  if (page.url.empty()) return say("there is no page to open: it comes with --http HOST:PORT");
  const bool display =
      !EnvironmentVariable("DISPLAY").empty() || !EnvironmentVariable("WAYLAND_DISPLAY").empty();
  const std::string browser = EnvironmentVariable("BROWSER");
  const auto commands = BrowserCommands(browser, display, by_way_of.empty() ? page.url : by_way_of);
  if (std::any_of(commands.begin(), commands.end(), Start)) return true;
  const std::string why = !browser.empty()
                              ? fmt::format("BROWSER is \"{}\", which cannot be started", browser)
                          : display ? "there is no xdg-open, and BROWSER is not set"
                                    : "there is no display, and BROWSER is not set";
  return say(fmt::format("{} is not opened in a browser: {}", page.url, why));
}

}  // namespace espalier
