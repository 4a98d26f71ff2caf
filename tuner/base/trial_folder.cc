#include "tuner/base/trial_folder.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace espalier {

namespace {

constexpr std::string_view kTrial = "trial-";

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

std::optional<std::int64_t> TrialNumberOf(std::string_view folder) {
  std::int64_t number = 0;
  if (!folder.starts_with(kTrial)) return std::nullopt;
  folder.remove_prefix(kTrial.size());
  if (!absl::SimpleAtoi(std::string(folder), &number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace espalier
