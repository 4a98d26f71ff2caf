#include "tuner/web/view/heading.h"

#include "tuner/api/json.h"
#include "tuner/core/state/study.h"

namespace espalier::view {

Heading HeadingOf(const Source& source) {
  if (source.log == nullptr) return {};
  return {source.log->revision(), source.log->incarnation()};
}

void PutHeading(JsonText& json, const Heading& heading) {
  json.Member("version", kVersion);
  json.Member("revision", heading.revision);
  json.Member("incarnation", heading.incarnation);
}

void PutDirections(JsonText& json, const std::vector<Direction>& directions) {
  json.Member("direction", ToString(directions.empty() ? Direction::kMinimize : directions[0]));
  json.Key("directions");
  json.Array(directions, [&json](Direction direction) { json.Value(ToString(direction)); });
}

void PutTexts(JsonText& json, std::string_view key,
              const std::map<std::string, std::string>& texts) {
  json.Key(key);
  json.Object([&] {
    for (const auto& [name, text] : texts) {
      json.Key(name);
      json.Raw(JsonOrQuoted(text));
    }
  });
}

}  // namespace espalier::view
