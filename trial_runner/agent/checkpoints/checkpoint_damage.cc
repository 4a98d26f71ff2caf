#include "trial_runner/agent/checkpoints/checkpoint_damage.h"

#include <fcntl.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/checkpoint_seal.h"
#include "base/file_descriptor.h"
#include "base/folder_entries.h"

namespace espalier {
namespace {

FileDescriptor OpenToCheck(const std::string& folder, const std::string& name) {
  const std::string path = absl::StrCat(folder, "/", name);
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

}  // namespace

bool HasChecksum(const std::string& folder, const std::string& name) {
  const FileDescriptor file = OpenToCheck(folder, name);
  return file.open() && ReadCheckpointSeal(file.get()).has_value();
}

absl::Status CheckForDamage(const std::string& folder, const std::string& name,
                            const std::function<bool()>& go_on) {
  if (name.empty()) return absl::OkStatus();
  const FileDescriptor file = OpenToCheck(folder, name);
  if (!file.open()) return absl::OkStatus();
  const absl::Status checked = CheckCheckpointSeal(file.get(), go_on);
  return absl::IsNotFound(checked) ? absl::OkStatus() : checked;
}

absl::Status SetAsideIfDamaged(const std::string& folder, const std::string& name,
                               const std::function<bool()>& go_on) {
  const absl::Status checked = CheckForDamage(folder, name, go_on);
  if (!absl::IsDataLoss(checked)) return checked;
  RemoveDamaged(folder);
  const std::string path = absl::StrCat(folder, "/", name);
  std::error_code error;
  std::filesystem::rename(path, path + kDamagedSuffix, error);
  const std::string aside = error ? absl::StrCat("cannot be set aside: ", error.message())
                                  : absl::StrCat("set aside as ", path, kDamagedSuffix);
  return absl::DataLossError(absl::StrCat(std::string(checked.message()), "; ", aside));
}

void RemoveDamaged(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> damaged;
  for (const auto& entry : FolderEntries(folder, error)) {
    if (entry.path().extension() == kDamagedSuffix) damaged.push_back(entry.path());
  }
  for (const std::filesystem::path& path : damaged) std::filesystem::remove(path, error);
}

}  // namespace espalier
