#pragma once

#include <string>

#include "tuner/web/assets/web_assets.h"

namespace espalier {

// The file's content. Aborts on bytes that are none: they are of this program.
std::string Unpacked(const WebAsset& asset);

}  // namespace espalier
