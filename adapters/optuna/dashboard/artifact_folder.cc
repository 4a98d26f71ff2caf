#include "adapters/optuna/dashboard/artifact_folder.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/private_files.h"

namespace espalier::optuna_dashboard {

namespace {

constexpr std::size_t kMaxIdBytes = 64;

absl::Status FileError(const std::string& doing, const std::string& path) {
  return absl::InternalError(
      absl::StrCat("artifacts: cannot ", doing, " \"", path, "\": ", std::strerror(errno)));
}

bool EndsWith(std::string_view name, std::string_view ending) {
  return absl::EndsWithIgnoreCase({name.data(), name.size()}, {ending.data(), ending.size()});
}

absl::Status NotThere() { return absl::NotFoundError("Artifact is not found."); }

}  // namespace

absl::StatusOr<std::string> ArtifactFolder::FileOf(const std::string& id) const {
  if (!available()) return absl::InvalidArgumentError("Cannot access to the artifacts.");
  if (id.empty() || id.size() > kMaxIdBytes ||
      id.find_first_not_of("0123456789abcdefABCDEF-") != std::string::npos) {
    return NotThere();
  }
  return (std::filesystem::path(path_) / id).string();
}

absl::Status ArtifactFolder::Write(const std::string& id, const std::string& content) const {
  ESPALIER_ASSIGN_OR_RETURN(const std::string path, FileOf(id));
  const absl::Status kept = KeepPrivateFile(path, content);
  if (kept.ok()) return kept;
  return absl::InternalError(absl::StrCat("artifacts: ", std::string(kept.message())));
}

absl::StatusOr<std::string> ArtifactFolder::Read(const std::string& id) const {
  ESPALIER_ASSIGN_OR_RETURN(const std::string path, FileOf(id));
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotThere();
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

absl::Status ArtifactFolder::Remove(const std::string& id) const {
  ESPALIER_ASSIGN_OR_RETURN(const std::string path, FileOf(id));
  if (unlink(path.c_str()) == 0) return absl::OkStatus();
  return errno == ENOENT ? NotThere() : FileError("remove", path);
}

std::string NewUuid() {
  std::array<unsigned char, 16> bytes{};
  // Cannot fail for so few bytes (getrandom(2)).
  while (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string uuid;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    absl::StrAppendFormat(&uuid, "%02x", bytes[i]);
  }
  return uuid;
}

std::string MimeType(const std::string& filename, std::string& encoding) {
  static constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".bmp", "image/bmp"},         {".css", "text/css"},       {".csv", "text/csv"},
      {".gif", "image/gif"},         {".htm", "text/html"},      {".html", "text/html"},
      {".jpeg", "image/jpeg"},       {".jpg", "image/jpeg"},     {".js", "application/javascript"},
      {".json", "application/json"}, {".md", "text/markdown"},   {".mp3", "audio/mpeg"},
      {".mp4", "video/mp4"},         {".mpeg", "video/mpeg"},    {".pdf", "application/pdf"},
      {".png", "image/png"},         {".py", "text/x-python"},   {".svg", "image/svg+xml"},
      {".tar", "application/x-tar"}, {".tiff", "image/tiff"},    {".txt", "text/plain"},
      {".wav", "audio/x-wav"},       {".webm", "video/webm"},    {".webp", "image/webp"},
      {".xml", "text/xml"},          {".zip", "application/zip"}};
  std::string_view name = filename;
  encoding.clear();
  if (EndsWith(name, ".gz")) {
    encoding = "gzip";
    name.remove_suffix(3);
  }
  for (const auto& [ending, type] : kTypes) {
    if (EndsWith(name, ending)) return type;
  }
  return "application/octet-stream";
}

absl::StatusOr<std::string> DataOfUri(const std::string& uri) {
  const std::size_t comma = uri.find(',');
  std::string data;
  if (uri.compare(0, 5, "data:") != 0 || comma == std::string::npos ||
      !absl::Base64Unescape(uri.substr(comma + 1), &data)) {
    return absl::InvalidArgumentError(
        "'file' needs a data URI, such as data:text/plain;base64,SGk=");
  }
  return data;
}

}  // namespace espalier::optuna_dashboard
