#include "tuner/server/http/http_packing.h"

#include <brotli/encode.h>
#include <zlib.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "httplib.h"
#include "tuner/server/http/http_connections.h"

namespace espalier {

namespace {

constexpr int kGzipLevel = 1;
constexpr int kBrotliQuality = 1;
constexpr int kGzipWindowBits = 15 + 16;  // with gzip's head and tail

// Whether the element of the header, "br;q=0.5", has a weight above 0.
bool Wanted(const std::vector<absl::string_view>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    absl::string_view part = absl::StripAsciiWhitespace(parts[i]);
    double weight = 0;
    if (!absl::StartsWithIgnoreCase(part, "q=")) continue;
    return absl::SimpleAtod(part.substr(2), &weight) && weight > 0;
  }
  return true;
}

bool IsText(const std::string& type) {
  return (type.starts_with("text/") && !type.starts_with("text/event-stream")) ||
         type.starts_with("application/json") || type.starts_with("application/javascript") ||
         type.starts_with("image/svg+xml");
}

bool IsWorthPacking(const httplib::Response& response) {
  return response.body.size() >= kMinPackedBytes && !response.has_header("Content-Encoding") &&
         IsText(response.get_header_value("Content-Type"));
}

// The client has the body, and what is said of it: of a length it would believe that it is the
// body's (RFC 9110, section 15.4.5).
void LeaveBodyOut(httplib::Response& response) {
  response.body.clear();
  for (const char* of_body : {"Content-Length", "Content-Type", "Content-Encoding"}) {
    response.headers.erase(of_body);
  }
}

void SetOnly(httplib::Response& response, const char* name, const std::string& value) {
  response.headers.erase(name);
  response.set_header(name, value);
}

}  // namespace

Packing AcceptedPacking(std::string_view accept_encoding) {
  Packing best = Packing::kNone;
  const absl::string_view header(accept_encoding.data(), accept_encoding.size());
  for (const absl::string_view element : absl::StrSplit(header, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(element, ';');
    const absl::string_view name = absl::StripAsciiWhitespace(parts.front());
    if (!Wanted(parts)) continue;
    if (absl::EqualsIgnoreCase(name, "br")) return Packing::kBrotli;
    if (absl::EqualsIgnoreCase(name, "gzip")) best = Packing::kGzip;
  }
  return best;
}

void PackAnswer(const httplib::Request& request, httplib::Response& response) {
  const bool worth_it = IsWorthPacking(response);
  if (worth_it && !response.has_header("Vary")) response.set_header("Vary", "Accept-Encoding");
  if (response.status == kNotModified) return LeaveBodyOut(response);
  if (!worth_it) return;
  const Packing packing = AcceptedPacking(request.get_header_value(kAcceptEncodingHeader));
  if (packing == Packing::kNone) return;
  const bool brotli = packing == Packing::kBrotli;
  std::optional<std::string> packed = brotli ? PackBrotli(response.body) : PackGzip(response.body);
  if (!packed) return;
  response.body = *std::move(packed);
  SetOnly(response, "Content-Encoding", brotli ? "br" : "gzip");
  SetOnly(response, "Content-Length", std::to_string(response.body.size()));
}

std::optional<std::string> PackBrotli(std::string_view text) {
  std::size_t size = BrotliEncoderMaxCompressedSize(text.size());
  std::string packed(size, '\0');
  if (size == 0 ||
      BrotliEncoderCompress(kBrotliQuality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, text.size(),
                            reinterpret_cast<const std::uint8_t*>(text.data()), &size,
                            reinterpret_cast<std::uint8_t*>(packed.data())) == BROTLI_FALSE) {
    return std::nullopt;
  }
  packed.resize(size);
  return packed;
}

std::optional<std::string> PackGzip(std::string_view text) {
  z_stream stream{};
  constexpr int kMemory = 8;  // zlib's default
  if (deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kGzipWindowBits, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return std::nullopt;
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  // zlib takes what it does not write to as if it did.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return done ? std::optional(std::move(packed)) : std::nullopt;
}

}  // namespace espalier
