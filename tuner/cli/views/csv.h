#pragma once

#include <string>
#include <vector>

namespace espalier {

// A line of a CSV file (RFC 4180), with its end. Fields with commas, quotes or line ends are
// quoted.
std::string CsvRow(const std::vector<std::string>& fields);

}  // namespace espalier
