#include "adapters/nni/service/body.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"

namespace espalier::nni {

namespace {

constexpr std::size_t kShown = 80;  // bytes of what was given instead

}  // namespace

struct Body::Impl {
  nlohmann::json json;
  std::set<std::string, std::less<>> asked;
  absl::Status status;

  // Null if the key is absent.
  const nlohmann::json* At(std::string_view key) {
    asked.emplace(key);
    const auto it = json.find(std::string(key));
    return it == json.end() || it->is_null() ? nullptr : &*it;
  }
  void Bad(std::string_view key, const std::string& what, const nlohmann::json& got) {
    std::string shown = got.dump(-1, ' ', true);
    if (shown.size() > kShown) shown = shown.substr(0, kShown) + "...";
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(key), "\": needs ", what, ", got ", shown)));
  }
};

Body::Body(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Body::~Body() = default;
Body::Body(Body&&) noexcept = default;

absl::StatusOr<Body> Body::Parse(std::string_view json) {
  if (const absl::Status depth = CheckJsonDepth(json); !depth.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the body: ", std::string(depth.message())));
  }
  auto impl = std::make_unique<Impl>();
  impl->json = ParseJson(json);
  if (!impl->json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("the body: needs one JSON object, got \"",
                                                   std::string(json.substr(0, kShown)), "\""));
  }
  return Body(std::move(impl));
}

bool Body::Has(std::string_view key) const { return impl_->At(key) != nullptr; }

std::string Body::Text(std::string_view key, std::string otherwise) {
  const nlohmann::json* value = impl_->At(key);
  if (value == nullptr) return otherwise;
  if (value->is_string()) {
    auto text = value->get<std::string>();
    if (text.find('\0') == std::string::npos) return text;
  }
  impl_->Bad(key, "a text without zero bytes", *value);
  return otherwise;
}

std::int64_t Body::Integer(std::string_view key, std::int64_t low, std::int64_t high,
                           std::int64_t otherwise) {
  const nlohmann::json* value = impl_->At(key);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    const double number = value->get<double>();
    const bool in_range = number >= static_cast<double>(low) && number <= static_cast<double>(high);
    if (in_range && number == std::floor(number)) return static_cast<std::int64_t>(number);
  }
  impl_->Bad(key, absl::StrCat("an integer from ", low, " to ", high), *value);
  return otherwise;
}

double Body::Number(std::string_view key, double low, double high, double otherwise) {
  const nlohmann::json* value = impl_->At(key);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= low && number <= high) return number;
  }
  impl_->Bad(key, absl::StrCat("a number from ", low, " to ", high), *value);
  return otherwise;
}

bool Body::Flag(std::string_view key, bool otherwise) {
  const nlohmann::json* value = impl_->At(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  impl_->Bad(key, "true or false", *value);
  return otherwise;
}

std::string Body::Options(std::string_view key) {
  const nlohmann::json* value = impl_->At(key);
  if (value == nullptr || *value == false) return "";
  if (*value == true) return "{}";
  if (value->is_object()) return value->dump(-1, ' ', true);
  impl_->Bad(key, "true, false or an object of options", *value);
  return "";
}

std::map<std::string, std::string> Body::Texts(std::string_view key) {
  std::map<std::string, std::string> texts;
  const nlohmann::json* value = impl_->At(key);
  if (value == nullptr) return texts;
  if (!value->is_object()) {
    impl_->Bad(key, "an object of texts", *value);
    return texts;
  }
  for (const auto& [name, text] : value->items()) {
    if (text.is_string()) {
      texts.emplace(name, text.get<std::string>());
    } else if (text.is_number()) {
      texts.emplace(name, text.dump());
    } else {
      impl_->Bad(absl::StrCat(std::string(key), ".", name), "a text or a number", text);
    }
  }
  return texts;
}

std::string Body::Json(std::string_view key) {
  const nlohmann::json* value = impl_->At(key);
  return value == nullptr ? "" : value->dump(-1, ' ', true);
}

void Body::Needs(std::string_view key, std::string_view what) {
  if (Has(key)) return;
  impl_->status.Update(absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(key), "\" is missing: needs ", std::string(what))));
}

absl::Status Body::Finish() const {
  if (!impl_->status.ok()) return impl_->status;
  for (const auto& [key, value] : impl_->json.items()) {
    if (impl_->asked.contains(key)) continue;
    std::string known;
    for (const std::string& name : impl_->asked) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("unknown key \"", key, "\"; known: ", known,
                     ". A front end that is newer than this service may send it"));
  }
  return absl::OkStatus();
}

std::string Body::Canonical(std::string_view without) const {
  nlohmann::json told = nlohmann::json::object();
  for (const auto& [key, value] : impl_->json.items()) {
    if (key != without && !value.is_null()) told[key] = value;
  }
  return told.dump(-1, ' ', true);
}

}  // namespace espalier::nni
