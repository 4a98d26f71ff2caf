#include "search_spaces/formats/nni/search_space_reading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "search_spaces/formats/nni/distribution_json.h"
#include "search_spaces/json_places.h"
#include "search_spaces/json_text.h"

namespace espalier {
namespace {

using search_spaces_json::Json;
using search_spaces_json::LocalFlaw;

class Reader {
 public:
  Reader(std::string_view document, std::string pointer)
      : document_(document), pointer_(std::move(pointer)) {}

  SearchSpaceReading Read() {
    const absl::StatusOr<Json> parsed = search_spaces_json::Parse("search space", document_);
    if (!parsed.ok()) {
      SpaceFlaw flaw{"", 0, std::string(parsed.status().message())};
      // Malformed text says where by itself; of a repeated key the parser does not know it.
      if (const JsonPlaces places(document_); !places.repeated_keys().empty()) {
        flaw.pointer = places.repeated_keys().front().pointer;
        flaw.line = places.repeated_keys().front().line;
      }
      return {{}, {std::move(flaw)}};
    }
    const Json::json_pointer at(pointer_);
    ReadSpace(parsed->contains(at) ? parsed->at(at) : Json());
    return Result();
  }

 private:
  void Bad(std::string pointer, std::string message) {
    flaws_.push_back({std::move(pointer), 0, std::move(message)});
  }

  // `what` is a sentence's rest: 'search space "lr" has no "_type"', 'search space "lr": needs'.
  void BadParameter(const std::string& name, std::string pointer, const std::string& what) {
    constexpr std::size_t kShown = 32;
    const std::string shown =
        name.size() <= kMaxFlatNameBytes ? name : name.substr(0, kShown) + "...";
    const char* link = absl::StartsWith(what, "has ") ? " " : ": ";
    Bad(std::move(pointer), absl::StrCat("search space \"", shown, "\"", link, what));
  }

  void ReadSpace(const Json& space) {
    if (!space.is_object()) {
      Bad(pointer_, absl::StrCat("search space: expected a JSON object of parameters by name, got ",
                                 search_spaces_json::Quote(space)));
      return;
    }
    ReadParameters(space, pointer_, "", std::nullopt);
    if (!flaws_.empty() && dimensions_.empty()) return;
    for (const DimensionFlaw& flaw : FlawsOf(dimensions_)) {
      std::string pointer = pointers_[flaw.dimension];
      if (flaw.value) pointer = PointerTo(PointerTo(pointer, "_value"), *flaw.value);
      BadParameter(dimensions_[flaw.dimension].name, std::move(pointer), flaw.what);
    }
  }

  void ReadParameters(const Json& object, const std::string& pointer, const std::string& prefix,
                      const std::optional<SearchSpace::Condition>& condition) {
    for (const auto& [name, spec] : object.items()) {
      if (condition && name == "_name") continue;
      ReadParameter(absl::StrCat(prefix, name), spec, PointerTo(pointer, name), condition);
    }
  }

  void ReadParameter(const std::string& name, const Json& spec, const std::string& pointer,
                     const std::optional<SearchSpace::Condition>& condition) {
    auto [distribution, flaws] = search_spaces_json::ReadDistribution(spec);
    for (LocalFlaw& flaw : flaws) BadParameter(name, pointer + flaw.pointer, flaw.what);
    if (!distribution) return;
    const std::size_t parent = dimensions_.size();
    const auto* choice = std::get_if<Choice>(&*distribution);
    const std::vector<ParameterValue> options =
        choice != nullptr && choice->nested ? choice->options : std::vector<ParameterValue>();
    dimensions_.push_back({name, *std::move(distribution), condition});
    pointers_.push_back(pointer);
    const std::string values = PointerTo(pointer, "_value");
    for (std::size_t option = 0; option < options.size(); ++option) {
      const auto& option_name = std::get<std::string>(options[option]);
      ReadParameters(spec["_value"][option], PointerTo(values, option),
                     absl::StrCat(name, "/", option_name, "/"),
                     SearchSpace::Condition{parent, option});
    }
  }

  SearchSpaceReading Result() {
    if (flaws_.empty()) {
      absl::StatusOr<SearchSpace> space = SearchSpace::Make(std::move(dimensions_));
      if (space.ok()) return {*std::move(space), {}};
      Bad(pointer_, std::string(space.status().message()));
    }
    const JsonPlaces places(document_);
    for (SpaceFlaw& flaw : flaws_) flaw.line = places.LineOf(flaw.pointer);
    std::stable_sort(flaws_.begin(), flaws_.end(),
                     [](const SpaceFlaw& a, const SpaceFlaw& b) { return a.line < b.line; });
    return {{}, std::move(flaws_)};
  }

  std::string_view document_;
  std::string pointer_;
  std::vector<SearchSpace::Dimension> dimensions_;
  std::vector<std::string> pointers_;  // of the dimensions
  std::vector<SpaceFlaw> flaws_;
};

}  // namespace

SearchSpaceReading ReadSearchSpace(std::string_view document, const std::string& pointer) {
  return Reader(document, pointer).Read();
}

}  // namespace espalier
