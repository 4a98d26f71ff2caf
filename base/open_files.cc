#include "base/open_files.h"

#include <algorithm>

namespace espalier {

namespace {

rlimit Limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

}  // namespace

void RaiseLimitOfOpenFiles() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit = LimitOfOpenFilesAtStart();
  if (limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  setrlimit(RLIMIT_NOFILE, &limit);
}

rlimit LimitOfOpenFilesAtStart() {
  static const rlimit at_start = Limit();
  return at_start;
}

rlim_t LimitOfOpenFiles() { return Limit().rlim_cur; }

}  // namespace espalier
