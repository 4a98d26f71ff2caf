#include "search_spaces/json_places.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/json/parse_json.h"
#include "search_spaces/json_text.h"

namespace espalier {

std::string PointerTo(const std::string& parent, std::string_view key) {
  return absl::StrCat(parent, "/",
                      absl::StrReplaceAll(std::string(key), {{"~", "~0"}, {"/", "~1"}}));
}

std::string PointerTo(const std::string& parent, std::size_t index) {
  return absl::StrCat(parent, "/", index);
}

std::size_t JsonPlaces::LineOf(std::string pointer) const {
  for (;;) {
    if (const auto line = lines_.find(pointer); line != lines_.end()) return line->second;
    if (pointer.empty()) return 1;
    const std::size_t slash = pointer.rfind('/');
    pointer.resize(slash == std::string::npos ? 0 : slash);
  }
}

void JsonPlaces::SkipSpace() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
  }
}

bool JsonPlaces::Take(char c) {
  SkipSpace();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonPlaces::Value(const std::string& pointer) {
  SkipSpace();
  if (at_ >= text_.size()) return false;
  if (!lines_.emplace(pointer, line_).second) repeated_keys_.push_back({pointer, line_});
  const char c = text_[at_];
  if (c == '{' || c == '[') {
    if (depth_ >= search_spaces_json::kMaxDepth) return false;
    ++depth_;
    ++at_;
    const bool whole = c == '{' ? Object(pointer) : Array(pointer);
    --depth_;
    return whole;
  }
  std::string ignored;
  if (c == '"') return Text(ignored);
  const std::size_t end = text_.find_first_of(" \t\r\n,]}", at_);
  at_ = end == std::string_view::npos ? text_.size() : end;
  return true;
}

bool JsonPlaces::Object(const std::string& pointer) {
  if (Take('}')) return true;
  do {
    std::string key;
    SkipSpace();
    if (!Text(key) || !Take(':') || !Value(PointerTo(pointer, key))) return false;
  } while (Take(','));
  return Take('}');
}

bool JsonPlaces::Array(const std::string& pointer) {
  if (Take(']')) return true;
  std::size_t index = 0;
  do {
    if (!Value(PointerTo(pointer, index++))) return false;
  } while (Take(','));
  return Take(']');
}

// Control characters are escaped in JSON's texts, so no line ends within one.
bool JsonPlaces::Text(std::string& decoded) {
  const std::size_t begin = at_;
  if (!Take('"')) return false;
  for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ >= text_.size()) return false;
  ++at_;
  const auto parsed = ParseJson<search_spaces_json::Json>(text_.substr(begin, at_ - begin));
  if (!parsed.is_string()) return false;
  decoded = parsed.get<std::string>();
  return true;
}

}  // namespace espalier
