#pragma once

#include <string>
#include <string_view>

#include "base/http2_frame.h"

namespace espalier {

// What a client says first, and that it knows the server's SETTINGS.
inline const std::string kBegin =
    std::string(http2::kPreface) + http2::Frame(http2::kSettings, 0, 0, "");
inline const std::string kAcknowledge = http2::Frame(http2::kSettings, http2::kAcknowledges, 0, "");

// A literal field with a new name, each text shorter than 127 bytes.
inline std::string HeaderField(std::string_view name, std::string_view value) {
  std::string bytes(1, '\0');
  bytes.push_back(static_cast<char>(name.size()));
  bytes.append(name).push_back(static_cast<char>(value.size()));
  return bytes.append(value);
}

// The head of a call of gRPC; an empty authorization: none.
inline std::string HeaderBlock(std::string_view path, std::string_view authorization) {
  std::string block = "\x83\x86";  // POST, http
  block += HeaderField(":path", path) + HeaderField(":authority", "localhost") +
           HeaderField("te", "trailers") + HeaderField("content-type", "application/grpc");
  return authorization.empty() ? block : block + HeaderField("authorization", authorization);
}

}  // namespace espalier
