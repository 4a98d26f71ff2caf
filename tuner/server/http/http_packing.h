#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace espalier {

inline constexpr int kNotModified = 304;
inline constexpr std::size_t kMinPackedBytes = 1024;  // less is sent as it is

// How an answer is packed (RFC 9110, section 8.4.1).
enum class Packing { kNone, kGzip, kBrotli };

// The best that a header "Accept-Encoding" takes.
Packing AcceptedPacking(std::string_view accept_encoding);

// Packs the body of a text that is not packed yet, if the request takes that (kAcceptEncodingHeader
// in http_connections.h) and it is worth it. As fast as each packing can: an answer is sent once.
// One of status kNotModified, which is given the body that the client has, is sent with the headers
// that go with it and without the body.
void PackAnswer(const httplib::Request& request, httplib::Response& response);

// nullopt: there is no memory.
std::optional<std::string> PackGzip(std::string_view text);
std::optional<std::string> PackBrotli(std::string_view text);

}  // namespace espalier
