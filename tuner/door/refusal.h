#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace espalier {

// What a server of HTTP/2 says first, as frames: SETTINGS that change nothing.
std::string SettingsFrame();
// That nothing after that stream is served (GOAWAY): clients of gRPC try the rest elsewhere.
std::string GoodbyeFrame(std::uint32_t last_stream);
// The answer to a call of gRPC that has failed: its head and trailers in one.
std::string RefusalFrame(std::uint32_t stream, const absl::Status& status);

}  // namespace espalier
