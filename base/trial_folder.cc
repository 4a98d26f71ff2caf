#include "base/trial_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/folder_entries.h"
#include "base/private_files.h"
#include "base/status.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrial = "trial-";
constexpr char kMarkOfStudy[] = ".study";
// Each failure means that another agent has come first.
constexpr int kClaimAttempts = 10;

std::string MarkIn(const std::string& folder) { return absl::StrCat(folder, "/", kMarkOfStudy); }

// The identity of the study that the folder is of; empty: it bears none. A mark that was on its way
// to the disk when the power was lost may be zeros, and says nothing either.
std::string OwnerOf(const std::string& folder) {
  std::string owner = TextOfFile(MarkIn(folder));
  return owner.find('\0') == std::string::npos ? owner : "";
}

std::string AsideFor(const std::string& folder, const std::string& identity) {
  return absl::StrCat(folder, ".old-", FolderName(identity));
}

}  // namespace

std::string FolderName(const std::string& study) {
  std::string name;
  for (const char c : study) {
    if (c == '/' || c == '%' || c == '\0' || (c == '.' && name.empty())) {
      absl::StrAppendFormat(&name, "%%%02X", static_cast<unsigned char>(c));
    } else {
      name.push_back(c);
    }
  }
  return name.empty() ? "%" : name;
}

std::string StudyOfFolder(std::string_view folder) {
  if (folder == "%") return "";
  std::string study;
  for (std::size_t i = 0; i < folder.size(); ++i) {
    int code = 0;
    if (folder[i] == '%' && absl::SimpleHexAtoi(std::string(folder.substr(i + 1, 2)), &code)) {
      study.push_back(static_cast<char>(code));
      i += 2;
    } else {
      study.push_back(folder[i]);
    }
  }
  return study;
}

std::string TrialFolder(const std::string& directory, const std::string& study,
                        std::int64_t number) {
  return absl::StrCat(directory, "/", FolderName(study), "/", std::string(kTrial), number);
}

// Of several agents that look at once, one moves the folder, or all find the same: a folder is
// never moved to where there is another one, and all would write the same mark.
absl::StatusOr<std::string> ClaimTrialFolder(const std::string& directory, const TrialName& trial) {
  const std::string& identity = trial.study_identity;
  std::string moved;
  if (identity.empty()) return moved;
  const std::string folder = TrialFolder(directory, trial.study, trial.number);
  absl::Status trouble;
  for (int attempt = 0; attempt < kClaimAttempts; ++attempt) {
    std::error_code error;
    if (!fs::exists(folder, error)) fs::rename(AsideFor(folder, identity), folder, error);
    ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(folder));
    const std::string owner = OwnerOf(folder);
    if (owner == identity) return moved;
    if (owner.empty()) {
      trouble = WritePrivateFile(MarkIn(folder), identity);
      continue;
    }
    const std::string aside = AsideFor(folder, owner);
    fs::rename(folder, aside, error);
    if (!error) moved = aside;
    trouble = error ? absl::FailedPreconditionError(
                          absl::StrCat("the folder ", folder,
                                       " is another study's of that name, and cannot be "
                                       "moved to ",
                                       aside, " (", error.message(), "): move it away"))
                    : absl::OkStatus();
  }
  if (!trouble.ok()) return trouble;
  return absl::AbortedError(absl::StrCat("the folder ", folder,
                                         " is used by trials of two studies of one name at once: "
                                         "give one of the agents another --dir"));
}

std::string FindTrialFolder(const std::string& directory, const TrialName& trial) {
  const std::string& identity = trial.study_identity;
  std::string folder = TrialFolder(directory, trial.study, trial.number);
  if (identity.empty()) return folder;
  std::string aside = AsideFor(folder, identity);
  std::error_code error;
  const std::string owner = OwnerOf(folder);
  const bool here =
      owner.empty() ? fs::exists(folder, error) || !fs::exists(aside, error) : owner == identity;
  return here ? folder : aside;
}

void RemoveEmptyTrialFolder(const std::string& folder) {
  std::error_code ignored;  // what stays does no harm
  std::error_code error;
  for (const auto& entry : FolderEntries(folder, error)) {
    if (entry.path().filename() != kMarkOfStudy) return;
  }
  if (error) return;  // there may be more in it
  fs::remove(MarkIn(folder), ignored);
  fs::remove(folder, ignored);
  fs::remove(fs::path(folder).parent_path(), ignored);
}

std::optional<std::int64_t> TrialNumberOf(std::string_view folder) {
  std::int64_t number = 0;
  if (!folder.starts_with(kTrial)) return std::nullopt;
  folder.remove_prefix(kTrial.size());
  if (!absl::SimpleAtoi(std::string(folder), &number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace espalier
