#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search_spaces/search_space.h"

namespace espalier {

// How `tuner space` shows search spaces and what is drawn from them. Pure.

// The parameters as a table, those of an option below it, and the number of configurations.
std::string SpaceTable(const SearchSpace& space);

// "6 parameters, 2 of them in options of nested choices; 48 configurations".
std::string SpaceSummary(const SearchSpace& space);

// A heading of the flat names and a line a trial; inactive parameters are empty.
std::string SamplesCsv(const SearchSpace& space, const std::vector<Parameters>& samples);
// One object a line, as trials get it: nested choices are objects.
std::string SamplesJson(const SearchSpace& space, const std::vector<Parameters>& samples);

}  // namespace espalier
