#pragma once

#include <string_view>

namespace espalier {

// The page at /login, which asks for a token, and its script at /login.js: see http_page_routes.h.
std::string_view LoginPage();
std::string_view LoginScript();

}  // namespace espalier
