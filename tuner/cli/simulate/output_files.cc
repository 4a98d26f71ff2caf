#include "tuner/cli/simulate/output_files.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <utility>

namespace espalier {

absl::Status CheckOutputFiles(const std::vector<OutputFile>& files) {
  std::map<std::filesystem::path, std::string> named;
  for (const auto& [option, path] : files) {
    if (path.empty()) continue;
    const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
    if (const auto [other, added] = named.emplace(whole, option); !added) {
      return absl::InvalidArgumentError(
          fmt::format("{} and {} both name \"{}\": want two files", other->second, option, path));
    }
    std::error_code error;
    if (!std::filesystem::is_directory(whole.parent_path(), error)) {
      return absl::InvalidArgumentError(fmt::format("{} \"{}\": there is no folder \"{}\"", option,
                                                    path, whole.parent_path().string()));
    }
  }
  return absl::OkStatus();
}

std::string PageNames::Next(const std::string& variant) {
  std::string name = variant;
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0 && c != '_' && c != '.' && c != '=' && byte < 0x80) c = '-';
  }
  const int before = used_[name]++;
  return before == 0 ? name : fmt::format("{}-{}", name, before + 1);
}

}  // namespace espalier
