#include "search_spaces/json_text.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json/json_depth.h"

namespace espalier::search_spaces_json {
namespace {

// Thrown by the parser's callback to leave it, caught in Parse below.
struct Refused {
  std::string reason;
};

class KeyCheck {
 public:
  explicit KeyCheck(Author author) : author_(author) {}

  // The parser's callback; `depth` counts the containers around the event.
  void See(int depth, Json::parse_event_t event, const Json& parsed) {
    const auto level = static_cast<std::size_t>(depth);
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens) {
      if (depth >= kMaxDepth) {
        throw Refused{absl::StrCat("values nest deeper than ", kMaxDepth, " levels")};
      }
      keys_.resize(std::max(keys_.size(), level + 2));
      keys_[level + 1].clear();
    } else if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!keys_[level].insert(key).second) {
        throw Refused{absl::StrCat("key \"", key, "\" appears twice in one object")};
      }
      if (author_ == Author::kUser && keys_[level].size() > kMaxKeysInObject) {
        throw Refused{absl::StrCat("an object has more than ", kMaxKeysInObject, " keys")};
      }
    }
  }

 private:
  const Author author_;
  std::vector<std::set<std::string>> keys_;  // by depth, of the object now open there
};

// "[json.exception.parse_error.101] parse error at line 1, column 5: ..." from "line" on.
std::string AfterMark(std::string_view message, std::string_view mark) {
  const std::size_t at = message.find(mark);
  return std::string(at == std::string_view::npos ? message : message.substr(at + mark.size()));
}

}  // namespace

absl::StatusOr<Json> Parse(std::string_view what, std::string_view text, Author author) {
  const std::string prefix(what);
  if (author == Author::kUser && text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        prefix, ": ", text.size(), " bytes of JSON, at most ", kMaxTextBytes, " are accepted"));
  }
  if (EndsEarly(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, ": malformed JSON at byte ", text.find('\0') + 1, ": a zero byte"));
  }
  KeyCheck check(author);
  try {
    return Json::parse(text, [&check](int depth, Json::parse_event_t event, Json& parsed) {
      check.See(depth, event, parsed);
      return true;
    });
  } catch (const Refused& refused) {
    return absl::InvalidArgumentError(absl::StrCat(prefix, ": ", refused.reason));
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, ": malformed JSON at ", AfterMark(error.what(), "parse error at ")));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, ": ", AfterMark(error.what(), "] "), "; numbers must be finite"));
  }
}

std::string Quote(const Json& value) {
  constexpr std::size_t kLongest = 100;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

absl::StatusOr<ParameterValue> ToParameterValue(const Json& json) {
  if (json.is_boolean()) return ParameterValue(json.get<bool>());
  if (json.is_string()) return ParameterValue(json.get<std::string>());
  if (json.is_number_float()) return ParameterValue(json.get<double>());
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("integers must be at most ",
                                                   std::numeric_limits<std::int64_t>::max(),
                                                   ", got ", Quote(json)));
  }
  if (json.is_number_integer()) return ParameterValue(json.get<std::int64_t>());
  return absl::InvalidArgumentError(
      absl::StrCat("values are numbers, strings or booleans, got ", Quote(json)));
}

Json FromParameterValue(const ParameterValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

}  // namespace espalier::search_spaces_json
