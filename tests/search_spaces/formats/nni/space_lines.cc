// Answers about search spaces, a line each: what is wrong with one, what is drawn from it. The
// other side of nni_differential_test.py, which asks about thousands.
//
// In:  {"space": "<text>", "seed": 1, "draws": 5}
// Out: {"error": "", "as_nni": [...], "own": [...]}; the draws as trials get them.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "search_spaces/formats/nni/sampling.h"
#include "search_spaces/formats/nni/search_space_reading.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;

Json Answer(const Json& question) {
  const SearchSpaceReading reading = ReadSearchSpace(question["space"].get<std::string>());
  Json errors = Json::array();
  for (const SpaceFlaw& flaw : reading.flaws) errors.push_back(flaw.Text());
  Json as_nni = Json::array();
  Json own = Json::array();
  if (reading.flaws.empty()) {
    const auto seed = question["seed"].get<std::uint64_t>();
    NumpyGenerator generator(seed);
    Random random(seed);
    for (int i = 0; i < question["draws"].get<int>(); ++i) {
      const auto drawn = SampleAsNni(reading.space, generator);
      as_nni.push_back(drawn.ok() ? Json::parse(reading.space.NestedJson(*drawn)) : Json());
      own.push_back(Json::parse(reading.space.NestedJson(reading.space.Sample(random))));
    }
  }
  return {{"errors", errors}, {"as_nni", as_nni}, {"own", own}};
}

}  // namespace
}  // namespace espalier

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << espalier::Answer(espalier::Json::parse(line)).dump() << "\n";
  }
}
