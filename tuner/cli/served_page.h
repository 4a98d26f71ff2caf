#pragma once

#include <string>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier {

// What a verb says of a page that it serves: where it is and, over SSH, the command that brings it
// to the user's own machine, in a line of its own. Also whether it asks for a token.
std::vector<std::string> PageLines(const ServedPage& page);

// Opens it in the user's browser and does not wait for that. False: it is said on stderr, in the
// verb's name, what keeps it from doing so. `by_way_of`: the address that the browser is given
// instead, which may hold a code and is said nowhere; empty: the page's own.
bool OpenInBrowser(const std::string& verb, const ServedPage& page,
                   const std::string& by_way_of = "");

}  // namespace espalier
