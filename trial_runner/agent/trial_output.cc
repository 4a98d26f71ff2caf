#include "trial_runner/agent/trial_output.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/folder_entries.h"
#include "trial_runner/agent/last_output.h"
#include "trial_runner/agent/ranks/rank_files.h"

namespace espalier {
namespace {

constexpr std::string_view kLogPrefix = "replica-";

std::optional<std::int64_t> ReplicaOf(std::string_view name, std::string_view suffix) {
  if (!name.starts_with(kLogPrefix) || !name.ends_with(suffix)) return std::nullopt;
  name.remove_prefix(kLogPrefix.size());
  name.remove_suffix(std::min(name.size(), suffix.size()));
  std::int64_t replica = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), replica);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return replica;
}

std::map<std::int64_t, std::filesystem::path> LogsIn(const std::string& folder, int rank) {
  const std::string suffix = RankLog(".log", rank);
  std::map<std::int64_t, std::filesystem::path> logs;
  std::error_code error;
  for (const auto& entry : FolderEntries(folder, error)) {
    // A link, which the trial may have made, could lead anywhere.
    if (entry.is_symlink(error) || !entry.is_regular_file(error)) continue;
    const std::string name = entry.path().filename().string();
    if (const auto replica = ReplicaOf(name, suffix)) logs.emplace(*replica, entry.path());
  }
  return logs;
}

}  // namespace

std::string TrialOutput(const std::string& trial_folder, std::size_t most, int rank) {
  const std::map<std::int64_t, std::filesystem::path> logs = LogsIn(trial_folder, rank);
  // From the newest back, as far as there is room.
  std::string text;
  for (auto it = logs.rbegin(); it != logs.rend() && text.size() < most; ++it) {
    std::string before = logs.size() > 1 ? absl::StrCat("==> replica ", it->first, " <==\n") : "";
    before += FileTail(it->second.string(), most - text.size());
    if (!text.empty() && !before.ends_with('\n')) before.push_back('\n');
    text.insert(0, before);
  }
  if (text.size() > most) text.erase(0, text.size() - most);
  return text;
}

}  // namespace espalier
