// The pages that browsers show, compressed, as they were built into this program.
#pragma once

#include <span>
#include <string_view>

namespace espalier {

// One file. The pages' own address is "/", whichever of them is asked for; the names of the others
// carry a hash of their content, so that what is at an address never changes.
struct WebAsset {
  std::string_view path;  // with its leading slash
  std::string_view type;  // Content-Type
  std::string_view br;    // the content, compressed by brotli
  std::string_view gzip;  // and by gzip
};

// All of them; none where the program was built without pages (ESPALIER_WEB).
std::span<const WebAsset> WebAssets();

}  // namespace espalier
