#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace espalier {

// How numbers are read from a command line. For the sources of this folder alone.

// Makes every option of `app` and of its commands that holds a number read decimal digits and
// nothing else. CLI11 by itself takes an empty text as 0 and 010 as 8. What it refuses is a
// CLI::ConversionError, which ParseProblem words. Call it when all options are there.
void ReadNumbersAsDecimals(CLI::App& app);

// What such an option takes: "a whole number, 0 or more".
std::string WantedNumber(const CLI::Option& option);

}  // namespace espalier
