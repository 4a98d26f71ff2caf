#pragma once

#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <string>
#include <string_view>

namespace espalier {

// JSON as Python writes it, with NaN and Infinity; numbers are the nearest doubles. Nothing here
// recurses: what is stored may have any depth. What comes in is held to CheckJsonDepth before.
inline constexpr unsigned kPythonJson = rapidjson::kParseNanAndInfFlag |
                                        rapidjson::kParseIterativeFlag |
                                        rapidjson::kParseFullPrecisionFlag;

// Where a zero byte is: the library ends there. Else what it has found.
inline rapidjson::ParseResult WholeText(std::string_view text, rapidjson::ParseResult found) {
  const std::size_t zero = text.find('\0');
  if (found.IsError() || zero == std::string_view::npos) return found;
  return {rapidjson::kParseErrorDocumentRootNotSingular, zero};
}

template <unsigned kMoreFlags = 0>
rapidjson::ParseResult ParsePythonJson(std::string_view text, rapidjson::Document& document) {
  document.Parse<kPythonJson | kMoreFlags>(text.data(), text.size());
  return WholeText(text, {document.GetParseError(), document.GetErrorOffset()});
}

// Tells `handler` (as of rapidjson::Reader) what is read. Numbers stay text: Python has integers of
// any length.
template <typename Handler>
rapidjson::ParseResult ReadPythonJson(std::string_view text, Handler& handler) {
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  return WholeText(
      text, reader.Parse<kPythonJson | rapidjson::kParseNumbersAsStringsFlag>(stream, handler));
}

// Its text, on one line without spaces.
std::string PythonJson(const rapidjson::Value& value);

}  // namespace espalier
