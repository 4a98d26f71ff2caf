#pragma once

#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <string>
#include <string_view>

namespace espalier {

// JSON as Python writes it, with NaN and Infinity. Nothing here recurses: what is stored may have
// any depth. What comes in is held to CheckJsonDepth before.
inline constexpr unsigned kPythonJson =
    rapidjson::kParseNanAndInfFlag | rapidjson::kParseIterativeFlag;

template <unsigned kMoreFlags = 0>
rapidjson::ParseResult ParsePythonJson(std::string_view text, rapidjson::Document& document) {
  document.Parse<kPythonJson | kMoreFlags>(text.data(), text.size());
  return {document.GetParseError(), document.GetErrorOffset()};
}

// Tells `handler` (as of rapidjson::Reader) what is read. Numbers stay text: Python has integers of
// any length.
template <typename Handler>
rapidjson::ParseResult ReadPythonJson(std::string_view text, Handler& handler) {
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  return reader.Parse<kPythonJson | rapidjson::kParseNumbersAsStringsFlag>(stream, handler);
}

// Its text, on one line without spaces.
std::string PythonJson(const rapidjson::Value& value);

}  // namespace espalier
