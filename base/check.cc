#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/check_scope.h"

namespace espalier {
namespace {

thread_local CheckScope* innermost = nullptr;

}  // namespace

CheckScope::CheckScope(const void* what, TextOf text)
    : what_(what), text_(text), outer_(std::exchange(innermost, this)) {}

CheckScope::~CheckScope() { innermost = outer_; }

std::string CheckScope::Text() {
  return innermost == nullptr ? "" : innermost->text_(innermost->what_);
}

void CheckFailed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  // Apart: what makes the text may itself meet what is broken.
  std::fflush(stderr);
  if (const std::string at = CheckScope::Text(); !at.empty()) {
    std::fprintf(stderr, "%s:%d: while at %s\n", file, line, at.c_str());
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace espalier
