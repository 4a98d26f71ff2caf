#include "adapters/nni/service/trial_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "adapters/nni/service/trial_view.h"
#include "tuner/base/machine.h"

namespace espalier::nni {

namespace {

constexpr std::string_view kLogPrefix = "replica-";
constexpr std::string_view kLogSuffix = ".log";

std::optional<std::int64_t> ReplicaOf(const std::string& name) {
  const std::string_view text = name;
  if (!text.starts_with(kLogPrefix) || !text.ends_with(kLogSuffix)) return std::nullopt;
  const std::string_view digits =
      text.substr(kLogPrefix.size(), text.size() - kLogPrefix.size() - kLogSuffix.size());
  std::int64_t replica = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), replica);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return replica;
}

std::string Tail(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::int64_t>(file.tellg());
  if (!file || size <= 0) return "";
  const std::int64_t from =
      std::max<std::int64_t>(0, size - static_cast<std::int64_t>(kMaxFileBytes));
  file.seekg(from);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// By replica, and so in the order in which they were started.
std::map<std::int64_t, std::filesystem::path> LogsIn(const std::string& folder) {
  std::map<std::int64_t, std::filesystem::path> logs;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    // A link could lead anywhere.
    if (!it->is_regular_file(error) || it->is_symlink(error)) continue;
    if (const auto replica = ReplicaOf(it->path().filename().string())) {
      logs.emplace(*replica, it->path());
    }
  }
  return logs;
}

std::string Elsewhere(const TrialFolder& folder) {
  if (folder.path.empty()) {
    return absl::StrCat("on node ", folder.node, ", whose agent is not connected");
  }
  return absl::StrCat("on node ", folder.node, " in ", folder.path);
}

}  // namespace

std::vector<TrialFolder> FoldersOf(const Trial& trial, const Study& study, const View& view) {
  std::set<NodeId> nodes;
  for (const SlotSpan& span : trial.spans) {
    for (const Slot& slot : span.slots) nodes.insert(slot.node);
  }
  static const std::string kThisMachine = MachineId();
  std::vector<TrialFolder> folders;
  for (const NodeId id : nodes) {
    const auto node = view.core.state().nodes.find(id);
    if (node == view.core.state().nodes.end()) continue;
    TrialFolder folder{node->second, "", false};
    if (const auto told = view.folders.find(folder.node); told != view.folders.end()) {
      folder.path = FolderOf(trial, study, told->second.path);
      folder.local = !kThisMachine.empty() && told->second.machine == kThisMachine;
    }
    folders.push_back(std::move(folder));
  }
  return folders;
}

absl::StatusOr<std::string> ReadOutput(const std::vector<TrialFolder>& folders) {
  if (folders.empty())
    return absl::NotFoundError("the trial has not started: it has no output yet");
  std::map<std::int64_t, std::filesystem::path> logs;
  std::string elsewhere;
  for (const TrialFolder& folder : folders) {
    std::map<std::int64_t, std::filesystem::path> here;
    if (folder.local) here = LogsIn(folder.path);
    if (here.empty()) absl::StrAppend(&elsewhere, elsewhere.empty() ? "" : "; ", Elsewhere(folder));
    logs.merge(here);
  }
  if (logs.empty()) {
    return absl::NotFoundError(
        absl::StrCat("this service cannot read the trial's output: it is ", elsewhere));
  }
  std::string text;
  for (const auto& [replica, path] : logs) {
    if (logs.size() > 1) absl::StrAppend(&text, "==> replica ", replica, " <==\n");
    text += Tail(path);
    if (!text.empty() && text.back() != '\n') text.push_back('\n');
  }
  if (!elsewhere.empty()) absl::StrAppend(&text, "(more is ", elsewhere, ")\n");
  if (text.size() > kMaxFileBytes) text.erase(0, text.size() - kMaxFileBytes);
  return text;
}

std::string DecisionsOf(const Trial& trial, const Study& study) {
  std::string text;
  for (const Decision& decision : study.decisions) {
    if (decision.trial_number != trial.number) continue;
    absl::StrAppend(&text,
                    absl::FormatTime("%Y-%m-%d %H:%M:%E3S UTC ",
                                     absl::UnixEpoch() + absl::Seconds(Seconds(decision.at)),
                                     absl::UTCTimeZone()),
                    std::string(ToString(decision.kind)), ", ", decision.from_slots, " to ",
                    decision.to_slots, " slots: ", decision.reason, "\n");
  }
  return text.empty() ? "nothing has been decided for the trial yet\n" : text;
}

}  // namespace espalier::nni
