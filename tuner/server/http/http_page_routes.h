#pragma once

#include <span>
#include <string>
#include <vector>

#include "tuner/server/http/http_route.h"
#include "tuner/web/assets/web_assets.h"

namespace espalier {

// The page at "/" and below "/ui", and its files; a list of links at "/links", for people without
// scripts. Without files, "/" is that list, which says how to get the page. Who may view nothing is
// asked for a token first, at "/login". `dashboard`: see ServiceRoutes. The files outlive the
// routes.
std::vector<HttpRoute> PageRoutes(std::string dashboard, std::span<const WebAsset> files);

}  // namespace espalier
