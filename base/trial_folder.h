#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace espalier {

// A study's name as a folder's: '/', '%' and a leading dot are written as %XX. Pure.
std::string FolderName(const std::string& study);
// And back.
std::string StudyOfFolder(std::string_view folder);

// <directory>/<study>/trial-<number>. Pure.
std::string TrialFolder(const std::string& directory, const std::string& study,
                        std::int64_t number);
// What the files of a trial are found by.
struct TrialName {
  std::string study;
  // Tells the study apart from all others of its name, also those of other services. Empty: not
  // known, as with an older service.
  std::string study_identity;
  std::int64_t number = 0;  // in its study
};

// One after another, several studies may have the same name, and so the same folders. A trial's
// folder therefore bears the mark of its study, a file with the study's identity.
//
// Makes the trial's folder, or takes the one that is there: one without a mark, of an earlier
// release, is this study's from now on. That of another study is moved to
// trial-<number>.old-<identity of that study> beside it, and comes back when that study's trial
// runs here again. Several agents may do this at once, in a folder that their machines share.
// Returns where another study's folder was moved; empty: there was none. Without an identity
// nothing is done.
absl::StatusOr<std::string> ClaimTrialFolder(const std::string& directory, const TrialName& trial);
// Where the trial has its files: its folder, or where this was moved for another study's. It need
// not exist.
std::string FindTrialFolder(const std::string& directory, const TrialName& trial);
// Removes a trial's folder that holds nothing but its mark, and then its study's, if that is empty.
void RemoveEmptyTrialFolder(const std::string& folder);

// "trial-7" -> 7; nullopt: it is no trial's folder. Pure.
std::optional<std::int64_t> TrialNumberOf(std::string_view folder);

}  // namespace espalier
