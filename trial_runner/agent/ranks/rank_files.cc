#include "trial_runner/agent/ranks/rank_files.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "base/private_files.h"

namespace espalier {
namespace {

constexpr std::string_view kLogEnd = ".log";

// replica-7.log with another end.
std::string LogWithEnd(std::string_view log, std::string_view end) {
  if (log.ends_with(kLogEnd)) log.remove_suffix(kLogEnd.size());
  return std::string(log) += end;
}

std::string BlameFile(const std::string& log) { return LogWithEnd(log, ".blame"); }

}  // namespace

std::string RankLog(const std::string& replica_log, int rank) {
  return rank == 0 ? replica_log : LogWithEnd(replica_log, absl::StrCat(".rank-", rank, ".log"));
}

std::string RankErrorFile(const std::string& replica_log, int rank) {
  return LogWithEnd(replica_log, absl::StrCat(".rank-", rank, ".error.json"));
}

std::string LauncherLog(const std::string& replica_log) {
  return LogWithEnd(replica_log, ".launcher.log");
}

std::string LauncherConfigFile(const std::string& replica_log) {
  return LogWithEnd(replica_log, ".launcher.json");
}

std::string LauncherFolder(const std::string& replica_log) {
  return LogWithEnd(replica_log, ".launcher");
}

absl::Status WriteBlame(const std::string& replica_log, const Blame& blame) {
  const nlohmann::json json = {{"rank", blame.rank}, {"of", blame.of}, {"why", blame.why}};
  return WritePrivateFile(BlameFile(replica_log), json.dump() + "\n");
}

std::optional<Blame> ReadBlame(const std::string& replica_log) {
  const nlohmann::json json = ParseJson(TextOfFile(BlameFile(replica_log)));
  if (!json.is_object()) return std::nullopt;
  const auto rank = json.find("rank");
  const auto of = json.find("of");
  const auto why = json.find("why");
  // Whatever the trial has made of it.
  if (rank == json.end() || !rank->is_number_integer() || of == json.end() ||
      !of->is_number_integer() || why == json.end() || !why->is_string()) {
    return std::nullopt;
  }
  return Blame{.rank = rank->get<int>(), .of = of->get<int>(), .why = why->get<std::string>()};
}

}  // namespace espalier
