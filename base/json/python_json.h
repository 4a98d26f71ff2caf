#pragma once

#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <string>
#include <string_view>

#include "base/json/json_depth.h"

namespace espalier {

// JSON as Python writes it, with NaN and Infinity. Nothing here recurses: what is stored may have
// any depth. What comes in is held to CheckJsonDepth before. Numbers are read as text: the
// library's own reading of some is a bit beside, and of zeros with an exponent undefined.
inline constexpr unsigned kPythonJson = rapidjson::kParseNanAndInfFlag |
                                        rapidjson::kParseIterativeFlag |
                                        rapidjson::kParseNumbersAsStringsFlag;

// Where a zero byte is: the library ends there. Else what it has found.
inline rapidjson::ParseResult WholeText(std::string_view text, rapidjson::ParseResult found) {
  if (found.IsError() || !EndsEarly(text)) return found;
  return {rapidjson::kParseErrorDocumentRootNotSingular, text.find('\0')};
}

// Integers that fit are integers, and all other numbers the nearest doubles.
rapidjson::ParseResult ParsePythonJson(std::string_view text, rapidjson::Document& document);

// Tells `handler` (as of rapidjson::Reader) what is read. Numbers stay text: Python has integers of
// any length.
template <typename Handler>
rapidjson::ParseResult ReadPythonJson(std::string_view text, Handler& handler) {
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  return WholeText(text, reader.Parse<kPythonJson>(stream, handler));
}

// Its text, on one line without spaces.
std::string PythonJson(const rapidjson::Value& value);

}  // namespace espalier
