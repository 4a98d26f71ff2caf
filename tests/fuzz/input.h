#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/file_descriptor.h"

// What libFuzzer calls, once for each input; always returns 0. A target aborts where something does
// not hold that it says does.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace espalier::fuzz {

inline std::string_view TextOf(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes a first byte that says what the rest is; 0 of an empty input.
inline std::uint8_t TakeByte(std::string_view& text) {
  if (text.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(text.front());
  text.remove_prefix(1);
  return byte;
}

// Gives the rest of an input to the reader that its first byte says.
template <typename Readers>
void ReadByFirstByte(std::string_view input, const Readers& readers) {
  const std::uint8_t kind = TakeByte(input);
  readers[kind % std::size(readers)](input);
}

// The bytes as a text of JSON's.
inline std::string JsonText(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= ' ' && c != '"' && c != '\\') {
      text += c;
    } else {
      text.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return text + "\"";
}

// The lines as a list of texts, or as an object of them, whose keys are k0, k1 and so on.
inline std::string JsonOfLines(std::string_view lines, bool object) {
  std::string json(1, object ? '{' : '[');
  for (int line = 0; line == 0 || !lines.empty(); ++line) {
    const std::size_t end = lines.find('\n');
    if (line > 0) json += ',';
    if (object) json += JsonText("k" + std::to_string(line)) + ':';
    json += JsonText(lines.substr(0, end));
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  return json + (object ? '}' : ']');
}

// An object of JSON's but for one value, which stands between.
struct OpenObject {
  std::string_view before;
  std::string_view after;
};

// Inputs are whole texts, unless their first byte is above all of ASCII: its lower bits say then
// which object the rest is the value of, and the two above them how: as JSON, as lines of a list,
// as a text, or as lines of an object. So one value, or one more entry of it, is made up without
// breaking what is around it.
template <std::size_t kObjects>
std::string WholeOrValue(std::string_view input, const OpenObject (&objects)[kObjects]) {
  static_assert(kObjects <= 0x20);
  if (input.empty() || static_cast<std::uint8_t>(input.front()) < 0x80) return std::string(input);
  const std::uint8_t kind = TakeByte(input);
  const OpenObject& object = objects[(kind & 0x1f) % kObjects];
  std::string text(object.before);
  switch (kind & 0x60) {
    case 0x00:
      text += input;
      break;
    case 0x20:
      text += JsonOfLines(input, /*object=*/false);
      break;
    case 0x40:
      text += JsonText(input);
      break;
    default:
      text += JsonOfLines(input, /*object=*/true);
  }
  return text.append(object.after);
}

// A file in memory with this content.
inline FileDescriptor FileOf(std::string_view content) {
  FileDescriptor file(memfd_create("fuzz", MFD_CLOEXEC));
  const ssize_t wrote = write(file.get(), content.data(), content.size());
  ESPALIER_CHECK(wrote == static_cast<ssize_t>(content.size()), "memory has room for an input");
  return file;
}

inline std::string PathOf(const FileDescriptor& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

}  // namespace espalier::fuzz
