#include "tuner/cli/local_runs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/connect.h"
#include "base/file_descriptor.h"
#include "base/folder_entries.h"
#include "base/host_port.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunsFolder = "espalier-runs";
constexpr std::size_t kRunsNamed = 3;
constexpr int kLoopbackAnswer_ms = 1000;

// Whether nothing listens there. Who takes the connection, or does not answer it, is somebody.
bool IsRefused(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  if (!parsed.ok() || inet_pton(AF_INET, parsed->host.c_str(), &to.sin_addr) != 1) return false;
  to.sin_port = htons(static_cast<std::uint16_t>(parsed->port));
  const FileDescriptor peer(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto await = [](int socket) {
    pollfd writable{.fd = socket, .events = POLLOUT, .revents = 0};
    return poll(&writable, 1, kLoopbackAnswer_ms) > 0;
  };
  return peer.open() &&
         !Connect(peer.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to), await) &&
         errno == ECONNREFUSED;
}

bool IsUnderWay(const std::string& folder) {
  std::error_code error;
  return fs::exists(ServiceFilePath(folder), error);
}

// The run that a verb means; empty if that is not clear.
std::string MeantRun(const std::string& study, RunsWanted wanted) {
  std::vector<std::string> runs = LocalRuns();
  if (!study.empty() && std::find(runs.begin(), runs.end(), RunFolder(study)) != runs.end()) {
    return RunFolder(study);
  }
  if (wanted == RunsWanted::kUnderWay) {
    std::erase_if(runs, [](const std::string& folder) { return !IsUnderWay(folder); });
  }
  return runs.size() == 1 ? runs.front() : "";
}

}  // namespace

std::string FileNameOf(const std::string& study) {
  std::string name;
  for (const char c : study) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       (c == '.' && !name.empty());
    name += plain ? c : '_';
  }
  return name;
}

std::string RunFolder(const std::string& study) {
  return (fs::path(kRunsFolder) / FileNameOf(study)).string();
}

std::vector<std::string> LocalRuns() {
  std::error_code error;
  std::multimap<fs::file_time_type, std::string, std::greater<>> runs;
  for (const fs::directory_entry& entry : FolderEntries(kRunsFolder, error)) {
    const fs::path database = DatabasePath(entry.path().string());
    const fs::file_time_type written = fs::last_write_time(database, error);
    if (!error) runs.emplace(written, entry.path().string());
  }
  std::vector<std::string> folders;
  for (const auto& [written, folder] : runs) folders.push_back(folder);
  return folders;
}

std::string LocalRunsText() {
  const std::vector<std::string> folders = LocalRuns();
  std::string text;
  for (std::size_t i = 0; i < std::min(kRunsNamed, folders.size()); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "--dir ", folders[i]);
  }
  if (folders.size() > kRunsNamed) {
    absl::StrAppend(&text, " and ", folders.size() - kRunsNamed, " more");
  }
  return text;
}

bool MayMeanLocalRun(const ServiceArguments& service) {
  return !service.named() && IsRefused(kDefaultService);
}

void TakeLocalRun(const std::string& verb, const std::string& study, RunsWanted wanted,
                  ServiceArguments& service) {
  if (service.named()) return;
  const std::string run = MeantRun(study, wanted);
  if (run.empty() || !MayMeanLocalRun(service)) return;
  service.directory = run;
  std::fprintf(stderr, "tuner %s: no service answers at %s; this is the run in %s\n", verb.c_str(),
               kDefaultService, run.c_str());
}

}  // namespace espalier
