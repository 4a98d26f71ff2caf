#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tuner/web/assets/web_assets.h"

namespace espalier {

// The content of a gzip file. nullopt: it is none, or is cut off.
std::optional<std::string> UnpackGzip(std::string_view packed);

// The file's content. Aborts on bytes that are none: they are of this program.
std::string Unpacked(const WebAsset& asset);

}  // namespace espalier
