#include "tests/protocol/recording.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

// A text's length in four bytes, little end first, and the text.
void Append(const std::string& text, std::string& bytes) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>((text.size() >> shift) & 0xff));
  }
  bytes += text;
}

bool Take(const std::string& bytes, std::size_t& at, std::string& text) {
  if (bytes.size() - at < 4) return false;
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  at += 4;
  if (bytes.size() - at < length) return false;
  text = bytes.substr(at, length);
  at += length;
  return true;
}

}  // namespace

absl::StatusOr<Recording> ReadRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("no recording ", path));
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Recording recording;
  for (std::size_t at = 0; at < bytes.size();) {
    Said& said = recording.emplace_back();
    if (!Take(bytes, at, said.by) || !Take(bytes, at, said.bytes)) {
      return absl::DataLossError(absl::StrCat(path, " breaks off"));
    }
  }
  return recording;
}

absl::Status WriteRecording(const std::string& path, const Recording& recording) {
  std::string bytes;
  for (const Said& said : recording) {
    Append(said.by, bytes);
    Append(said.bytes, bytes);
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  return file ? absl::OkStatus() : absl::DataLossError(absl::StrCat("cannot write ", path));
}

}  // namespace espalier
