#pragma once

#include <exception>
#include <string>

namespace espalier {

// LibTorch's messages go on with a stack.
inline std::string FirstLine(const std::exception& e) {
  const std::string message = e.what();
  return message.substr(0, message.find('\n'));
}

}  // namespace espalier
