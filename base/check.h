#pragma once

#include <string_view>

namespace espalier {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

}  // namespace espalier

// For what cannot happen unless the program is wrong: prints where and why, and aborts.
// What can happen (bad input, a lost file) is an absl::Status instead.
#define ESPALIER_CHECK(condition, message)                                \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::espalier::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
