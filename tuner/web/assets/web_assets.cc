#include "tuner/web/assets/web_assets.h"

#include <cstddef>

// The bytes are in embedded.S, which the assembler fills from the files.
#define ESPALIER_BYTES(name)                                                        \
  extern "C" const char espalier_web_##name##_br[], espalier_web_##name##_br_end[], \
      espalier_web_##name##_gz[], espalier_web_##name##_gz_end[];
#ifdef ESPALIER_BUILD_WEB
ESPALIER_BYTES(index_html)
ESPALIER_BYTES(app_js)
ESPALIER_BYTES(app_css)
#endif

namespace espalier {
#ifdef ESPALIER_BUILD_WEB
namespace {

std::string_view Between(const char* first, const char* end) {
  return {first, static_cast<size_t>(end - first)};
}

}  // namespace
#endif

std::span<const WebAsset> WebAssets() {
#ifdef ESPALIER_BUILD_WEB
#define ASSET(where, kind, name)                                                  \
  WebAsset{.path = where,                                                         \
           .type = kind,                                                          \
           .br = Between(espalier_web_##name##_br, espalier_web_##name##_br_end), \
           .gzip = Between(espalier_web_##name##_gz, espalier_web_##name##_gz_end)},
  static const WebAsset assets[] = {
#include <web_assets.inc>
  };
  return assets;
#else
  return {};
#endif
}

}  // namespace espalier
