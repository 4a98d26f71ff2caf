#include "tests/benchmarks/power_cuts/stage.h"

#include <utility>

#include "base/private_files.h"

namespace espalier::power_cuts {

std::unique_ptr<TestedService> Stage::StartService() const {
  auto service = TestedService::Start(root, {recorder, story});
  return service.ok() ? *std::move(service) : nullptr;
}

void Stage::Promise(const std::string& path) const {
  story->promises.push_back(
      {.path = path.substr(root.size() + 1), .content = TextOfFile(path), .from = recorder->Now()});
}

void Stage::EndPromises(const std::string& folder, const std::set<std::string>& but) const {
  for (Story::Promise& promise : story->promises) {
    const std::string path = Path(promise.path);
    if (!path.starts_with(folder + "/") || promise.until != kNever || but.contains(path)) continue;
    promise.until = recorder->Now();
  }
}

void Stage::BeginFolder(const std::string& folder, const std::string& version) const {
  const std::string path = folder.substr(root.size() + 1);
  Story::Folder next{.path = path, .versions = {}, .from = recorder->Now()};
  for (Story::Folder& before : story->folders) {
    if (before.path != path || before.until != kNever) continue;
    before.until = next.from;
    next.versions = before.versions;
  }
  if (!next.versions.empty()) next.versions.insert(version);
  story->folders.push_back(next);
}

void Stage::EndFolder(const std::string& folder, const std::string& version) const {
  BeginFolder(folder, version);
  story->folders.back().versions = {version};
}

}  // namespace espalier::power_cuts
