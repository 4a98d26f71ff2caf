#pragma once

#include <sys/resource.h>

namespace espalier {

// Most systems let a process have 1,024 files, pipes and connections open until it asks for more.
// Asks for what it may have, up to 65,536.
void RaiseLimitOfOpenFiles();

// The limit before that: what programs that this process starts are to begin with, since some break
// where descriptors have large numbers (select).
rlimit LimitOfOpenFilesAtStart();

// How many may be open now.
rlim_t LimitOfOpenFiles();

}  // namespace espalier
