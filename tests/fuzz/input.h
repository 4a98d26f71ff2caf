#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
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
