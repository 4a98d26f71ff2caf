#include "tuner/study_file/text_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tuner/study_file/yaml_text.h"

namespace espalier {

namespace {

// Of the one that begins there; `at` itself: none does, or it does not end.
std::size_t EndOfComment(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  const std::size_t closing =
      rest.starts_with("/*") ? text.find("*/", at + 2) : std::string_view::npos;
  return closing == std::string_view::npos ? at : closing + 2;
}

// Of the one that begins there, behind its closing quote.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return at + 1;
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError("is a folder, not a file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int reason = errno;
    if (reason == ENOENT) return absl::InvalidArgumentError("no such file");
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be read: ", std::generic_category().message(reason)));
  }
  // One byte more than allowed tells a file that is too long, also where size is not known ahead.
  std::string text(kMaxTextFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return absl::InvalidArgumentError("cannot be read to its end");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxTextFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has more than ", kMaxTextFileBytes, " bytes"));
  }
  return text;
}

std::string WithoutComments(std::string_view text) {
  std::string plain(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = EndOfComment(text, at);
    if (end <= at) {
      at = text[at] == '"' ? EndOfString(text, at) : at + 1;
      continue;
    }
    for (; at < end; ++at) {
      if (plain[at] != '\n') plain[at] = ' ';
    }
  }
  return plain;
}

absl::StatusOr<std::string> JsonInFile(std::string_view text, const std::string& path) {
  if (IsYamlFile(path)) return JsonOfYaml(text, path);
  return WithoutComments(text);
}

}  // namespace espalier
