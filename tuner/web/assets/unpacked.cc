#include "tuner/web/assets/unpacked.h"

#include <zlib.h>

#include <array>

#include "base/check.h"

namespace espalier {

std::string Unpacked(const WebAsset& asset) {
  constexpr int kGzipWindowBits = 15 + 16;
  z_stream stream{};
  ESPALIER_CHECK(inflateInit2(&stream, kGzipWindowBits) == Z_OK, "out of memory");
  // zlib does not write to what it reads.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(asset.gzip.data()));
  stream.avail_in = static_cast<uInt>(asset.gzip.size());
  std::string content;
  std::array<char, 1 << 16> piece;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    content.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  ESPALIER_CHECK(state == Z_STREAM_END, "the pages in this program are damaged");
  return content;
}

}  // namespace espalier
