#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/state/curve.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

// What each answer begins with: the version of its form, and how new what it says is.
struct Heading {
  std::int64_t revision = 0;
  std::string incarnation;
};

// To be asked on the owner's thread, with the first look.
Heading HeadingOf(const Source& source);

void PutHeading(JsonText& json, const Heading& heading);

// Of a study: its first one, and all.
void PutDirections(JsonText& json, const std::vector<Direction>& directions);

// An object of JSON texts by key, each as what it stands for.
void PutTexts(JsonText& json, std::string_view key,
              const std::map<std::string, std::string>& texts);

}  // namespace espalier::view
