#include "tests/benchmarks/power_cuts/restart.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "base/trial_folder.h"
#include "tests/benchmarks/power_cuts/agents.h"
#include "tests/benchmarks/power_cuts/service.h"
#include "trial_runner/agent/agent_home.h"
#include "trial_runner/agent/checkpoints/checkpoint_fetch.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"
#include "trial_runner/torch/checkpoints/checkpoint_file.h"
#include "tuner/storage/upkeep.h"

namespace espalier::power_cuts {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  return paths;
}

// As an agent that is to run each of the trials again. Returns what stands in the way.
void StartAgent(const std::string& directory, Found& found) {
  ReadAgentRecord(AgentHomeFolder(directory, "a")).status().IgnoreError();
  StoredCheckpoints(directory, 100);
  for (const fs::path& study : Entries(directory)) {
    const std::string name = StudyOfFolder(study.filename().string());
    for (const fs::path& trial : Entries(study)) {
      const auto number = TrialNumberOf(trial.filename().string());
      if (!number) continue;
      const auto moved = ClaimTrialFolder(directory, {name, IdentityFor(name), *number});
      if (!moved.ok()) found.half.push_back(std::string(moved.status().message()));
      if (moved.ok() && !moved->empty()) found.half.push_back("moved away: " + *moved);
    }
  }
}

// What is under way there is nobody's checkpoint: a fetch goes on from it, and compares the
// checksum of all of it before it gives it its place.
bool IsUnderWay(const fs::path& path) {
  return std::any_of(path.begin(), path.end(),
                     [](const fs::path& part) { return part.string().starts_with(kIncoming); });
}

void CheckFile(const fs::path& path, Found& found) {
  const std::string name = path.filename().string();
  if (StepOfCheckpoint(name) && !IsUnderWay(path)) {
    const absl::Status whole = VerifyCheckpointFile(path.string());
    if (!whole.ok()) found.half.push_back(std::string(whole.message()));
  }
  const bool database = name.ends_with(".db") || name.find(".db.schema-") != std::string::npos;
  if (!database || name == kDatabase || name.find(".unfinished-") != std::string::npos) return;
  for (const char* beside : {"-wal", "-shm", "-journal"}) {
    if (name.ends_with(beside)) return;
  }
  const absl::Status sound = CheckSound(path.string(), "is not sound");
  if (!sound.ok()) {
    found.half.push_back(absl::StrCat(path.string(), ": ", std::string(sound.message())));
  }
}

void ReadFiles(const std::string& root, Found& found) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  for (const fs::path& path : paths) {
    const std::string name = path.lexically_relative(root).string();
    if (!name.starts_with(kDatabase) || name.find(".db.") != std::string::npos) {
      found.files[name] = TextOfFile(path.string());
    }
    CheckFile(path, found);
  }
}

void StartService(const std::string& root, Found& found) {
  {
    const auto service = TestedService::Start(root);
    if (!service.ok()) {
      found.refused = std::string(service.status().message());
      return;
    }
    found.state = (*service)->loaded();
    found.credentials = {.at = 0,
                         .trial_key = (*service)->credentials().trial_key,
                         .certificate_hash = (*service)->credentials().certificate_hash,
                         .join_token = (*service)->credentials().join_token};
  }
  const absl::Status sound = CheckSound(root + "/" + kDatabase, "the database is not sound");
  if (!sound.ok()) found.half.push_back(std::string(sound.message()));
}

// States by number: 0 is the first one, and 1 that after the first commit.
const SharedState& StateAfter(const Story& story, std::size_t commits) {
  return commits == 0 ? story.begin : story.commits[commits - 1].after;
}

std::optional<std::size_t> NumberOf(const Story& story, const TunerState& wanted) {
  for (std::size_t i = 0; i <= story.commits.size(); ++i) {
    const SharedState& state = StateAfter(story, i);
    if (state != nullptr && Same(*state, wanted)) return i;
  }
  return std::nullopt;
}

void JudgeState(const Story& story, std::int64_t now, const Found& found, Verdict& verdict) {
  std::size_t least = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < story.commits.size(); ++i) {
    if (story.commits[i].done <= now) least = i + 1;
    if (story.commits[i].begun <= now) most = i + 1;
  }
  const std::size_t committed = least;
  for (const Story::Answer& answer : story.answers) {
    if (answer.at <= now) least = std::max(least, answer.commits);
  }
  for (std::size_t i = least; i <= most; ++i) {
    const SharedState& state = StateAfter(story, i);
    if (state != nullptr && Same(*state, *found.state)) return;
  }
  if (const auto is = NumberOf(story, *found.state)) {
    verdict.lost.push_back(absl::StrCat("the state is that after commit ", *is, "; ", committed,
                                        " were done, and clients knew of ", least));
  } else {
    verdict.half.push_back("a state that never was");
  }
}

void JudgeCredentials(const Story& story, std::int64_t now, const Found& found, Verdict& verdict) {
  const Story::Credentials* told = nullptr;
  for (const Story::Credentials& one : story.credentials) {
    if (one.at <= now) told = &one;
  }
  if (told == nullptr) return;
  const auto compare = [&verdict](const char* what, const std::string& is, const std::string& was) {
    if (!was.empty() && is != was) verdict.lost.push_back(what);
  };
  compare("the key of trials' tokens", found.credentials.trial_key, told->trial_key);
  compare("the certificate", found.credentials.certificate_hash, told->certificate_hash);
  compare("the token to join with", found.credentials.join_token, told->join_token);
}

void JudgeFolder(const Story::Folder& folder, const Found& found, Verdict& verdict) {
  std::set<std::string> versions;
  std::size_t parts = 0;
  for (const auto& [path, content] : found.files) {
    if (!path.starts_with(folder.path + "/") || fs::path(path).filename().string().starts_with("."))
      continue;
    ++parts;
    versions.insert(content.substr(0, content.find('w')));
  }
  constexpr std::size_t kParts = 3;
  if (versions.empty() && !folder.versions.empty()) verdict.lost.push_back(folder.path);
  if (versions.empty()) return;
  if (versions.size() > 1 || parts != kParts) {
    verdict.half.push_back(folder.path);
  } else if (!folder.versions.empty() && !folder.versions.contains(*versions.begin())) {
    verdict.lost.push_back(absl::StrCat(folder.path, " is of version ", *versions.begin()));
  }
}

}  // namespace

void NumberAnswers(Story& story) {
  for (Story::Answer& answer : story.answers) {
    answer.commits = NumberOf(story, *answer.seen).value_or(0);
  }
}

Found Restart(const std::string& root) {
  Found found;
  for (const char* machine : {"a", "b"}) StartAgent(root + "/" + machine, found);
  ReadFiles(root, found);
  StartService(root, found);
  return found;
}

Verdict Judge(const Story& story, std::int64_t now, const Found& found) {
  Verdict verdict;
  verdict.half = found.half;
  if (found.refused.empty()) {
    JudgeState(story, now, found, verdict);
    JudgeCredentials(story, now, found, verdict);
  }
  for (const Story::Promise& promise : story.promises) {
    if (promise.from > now || promise.until < now) continue;
    const auto file = found.files.find(promise.path);
    if (file == found.files.end()) {
      verdict.lost.push_back(promise.path);
    } else if (file->second != promise.content) {
      verdict.half.push_back(promise.path + " is another one");
    }
  }
  for (const Story::Folder& folder : story.folders) {
    if (folder.from <= now && now < folder.until) JudgeFolder(folder, found, verdict);
  }
  return verdict;
}

}  // namespace espalier::power_cuts
