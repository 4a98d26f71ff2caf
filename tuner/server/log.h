#pragma once

namespace espalier {

// The service's log: one line an event, key=value, on stderr, at spdlog's global level (the
// command line sets it). Does nothing if the program has put a logger of its own in place.
void LogToStderr();

}  // namespace espalier
