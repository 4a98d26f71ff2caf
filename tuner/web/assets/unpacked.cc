#include "tuner/web/assets/unpacked.h"

#include <zlib.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace espalier {

std::optional<std::string> UnpackGzip(std::string_view packed) {
  constexpr int kGzipWindowBits = 15 + 16;  // with gzip's head and tail
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) return std::nullopt;
  // zlib does not write to what it reads.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string content;
  std::array<char, 16 << 10> piece;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    content.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END ? std::optional(std::move(content)) : std::nullopt;
}

std::string Unpacked(const WebAsset& asset) {
  std::optional<std::string> content = UnpackGzip(asset.gzip);
  ESPALIER_CHECK(content.has_value(), "the pages in this program are damaged");
  return *std::move(content);
}

}  // namespace espalier
