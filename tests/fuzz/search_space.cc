// Search spaces in NNI's format and in Optuna's.

#include "search_spaces/search_space.h"

#include "base/random.h"
#include "search_spaces/formats/nni/search_space_reading.h"
#include "search_spaces/formats/optuna/space.h"
#include "tests/fuzz/input.h"

namespace espalier {
namespace {

constexpr fuzz::OpenObject kSpaces[] = {
    {R"({"a": {"_type": "choice", "_value": )", "}}"},
    {R"({"a": {"_type": "randint", "_value": )", "}}"},
    {R"({"a": {"_type": "quniform", "_value": )", "}}"},
    {R"({"a": {"_type": "qloguniform", "_value": )", "}}"},
    {R"({"a": {"_type": "qlognormal", "_value": )", "}}"},
    {R"({"a": {"_type": "choice", "_value": [{"_name": "A", "b": )", R"(}, {"_name": "B"}]}})"},
    {R"({"a": {"_type": "choice", "_value": [{"_name": )", R"(}, {"_name": "B"}]}})"},
    {R"({"a": {"name": "CategoricalDistribution", "attributes": {"choices": )", "}}}"},
    {R"({"a": {"name": "IntDistribution", "attributes": )", "}}"},
    {R"({"a": {"name": "FloatDistribution", "attributes": )", "}}"},
};

// Draws are decided by a value's own kind: a space that exists has one for each of its dimensions.
void Draw(const SearchSpace& space) {
  Random random(1);
  const Parameters drawn = space.Sample(random);
  ESPALIER_CHECK(space.Validate(drawn).ok(), "a space takes what is drawn from it");
  const absl::StatusOr<Parameters> read = ParametersFromRecord(space.NestedJson(drawn));
  ESPALIER_CHECK(read.ok(), "and a trial can read it");
  ESPALIER_CHECK(space.Validate(*read).ok(), "as what was drawn");
}

void Use(const SearchSpaceReading& reading) {
  if (!reading.flaws.empty()) {
    ESPALIER_CHECK(!reading.status().ok(), "a flaw is told");
    return;
  }
  const SearchSpace& space = reading.space;
  const absl::StatusOr<SearchSpace> again = SearchSpace::FromJson(space.ToJson());
  ESPALIER_CHECK(again.ok() && *again == space, "a space that is written reads as the same");
  space.Describe();
  static_cast<void>(space.Cardinality());
  static_cast<void>(space.CheckVariables());
  Draw(space);
  ToOptuna(space);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text =
      espalier::fuzz::WholeOrValue(espalier::fuzz::TextOf(data, size), espalier::kSpaces);
  espalier::Use(espalier::ReadSearchSpace(text));
  espalier::LooksLikeOptuna(text);
  espalier::Use(espalier::ReadOptunaSpace(text).reading);
  return 0;
}
