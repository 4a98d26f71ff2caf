#pragma once

#include <string>
#include <string_view>

namespace espalier {

// What a trial has printed since: `before` and `now` are its output as api::GetTrialOutput gives
// it, by node and start, of which both may have lost their beginnings. Where the trial has printed
// in several places, each part has the heading of its place, unless that is the one before. Pure.
std::string NewOutput(std::string_view before, std::string_view now);

}  // namespace espalier
