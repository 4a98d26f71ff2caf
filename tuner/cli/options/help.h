#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace CLI {
class App;
class Formatter;
class ParseError;
}  // namespace CLI

namespace espalier {

// What the library of command lines prints, in our words. For the sources of this folder alone.

// Help texts whose descriptions are wrapped between words to lines of at most `width` columns, so
// that the terminal need not break them; 0: they stay on one line each, as for a pipe.
std::shared_ptr<CLI::Formatter> HelpFormatter(std::size_t width);

// That `app` has no such command or option, and which was probably meant.
std::string UnknownWord(const CLI::App& app, const std::string& word);

// What is wrong with a command line that `app` could not parse, in one line: "tuner run: unknown
// option "--slot", did you mean "--slots"? See tuner run --help".
std::string ParseProblem(const CLI::App& app, const CLI::ParseError& error);

}  // namespace espalier
