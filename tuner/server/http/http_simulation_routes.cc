// Routes of the HTTP endpoint: simulations of recorded studies (tuner/server/simulations).

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/json/parse_json.h"
#include "base/shortened.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/simulations/simulations.h"

namespace espalier {

namespace {

constexpr int kBegun = 202;
constexpr std::size_t kMaxQuotedValue = 100;

using SimulationBody = nlohmann::json;

absl::Status NeedsValue(const std::string& key, const std::string& what,
                        const SimulationBody& got) {
  const std::string text = got.dump(-1, ' ', false, SimulationBody::error_handler_t::replace);
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\": needs ", what, ", got ", Shortened(text, kMaxQuotedValue)));
}

// Empty: none is meant, as in the bodies of other calls.
absl::StatusOr<std::string> TextIn(const std::string& key, const SimulationBody& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return NeedsValue(key, "a text", value);
  return value.get<std::string>();
}

absl::StatusOr<std::int64_t> NumberIn(const std::string& key, const SimulationBody& value,
                                      std::int64_t least, std::int64_t most) {
  const std::string what = absl::StrCat("a whole number from ", least, " to ", most);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
  if (!fits) return NeedsValue(key, what, value);
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return NeedsValue(key, what, value);
  return number;
}

absl::StatusOr<SimulationWanted> ReadWanted(const std::string& text) {
  const auto body = ParseJson<SimulationBody>(text.empty() ? "{}" : text);
  if (!body.is_object()) {
    return absl::InvalidArgumentError("the body: needs a JSON object with \"policy\"");
  }
  SimulationWanted wanted;
  for (const auto& [key, value] : body.items()) {
    if (key == "policy") {
      ESPALIER_ASSIGN_OR_RETURN(wanted.policy, TextIn(key, value));
    } else if (key == "pruner") {
      ESPALIER_ASSIGN_OR_RETURN(wanted.pruner, TextIn(key, value));
    } else if (key == "slots") {
      ESPALIER_ASSIGN_OR_RETURN(const std::int64_t slots,
                                NumberIn(key, value, 1, kMaxSimulatedSlots));
      wanted.slots = static_cast<int>(slots);
    } else if (key == "seed") {
      ESPALIER_ASSIGN_OR_RETURN(wanted.seed,
                                NumberIn(key, value, 0, std::numeric_limits<std::int64_t>::max()));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("\"", Shortened(key, kMaxQuotedValue),
                                                     "\": unknown key. Known: policy, pruner, "
                                                     "slots, seed"));
    }
  }
  if (wanted.policy.empty()) {
    return absl::InvalidArgumentError(
        "\"policy\": needs the name of a policy, such as fixed or promise_goodput:urgency=1");
  }
  return wanted;
}

HttpAnswer StartSimulation(Simulations& simulations, const HttpCall& call) {
  const absl::StatusOr<SimulationWanted> wanted = ReadWanted(call.body);
  if (!wanted.ok()) return ToAnswer(wanted.status());
  const absl::StatusOr<std::int64_t> id =
      simulations.Start(call.tuner, call.path.at("study"), *wanted);
  if (!id.ok()) return ToAnswer(id.status());
  HttpAnswer answer{absl::OkStatus(), absl::StrCat("{\"id\":", *id, "}")};
  answer.code = kBegun;
  return answer;
}

HttpAnswer GetSimulation(const Simulations& simulations, const HttpCall& call) {
  const std::string& text = call.path.at("simulation_id");
  std::int64_t id = 0;
  if (!absl::SimpleAtoi(text, &id) || id < 0) {
    return ToAnswer(absl::InvalidArgumentError(absl::StrCat(
        "simulation id \"", text, "\": needs the number that its start has answered with")));
  }
  const absl::StatusOr<std::string> json = simulations.Json(id);
  return json.ok() ? HttpAnswer{absl::OkStatus(), *json} : ToAnswer(json.status());
}

}  // namespace

std::vector<HttpRoute> SimulationRoutes(Simulations* simulations) {
  const auto known = [simulations]() -> Simulations& {
    ESPALIER_CHECK(simulations != nullptr, "a service that answers has simulations");
    return *simulations;
  };
  return {{.method = "POST",
           .path = "/api/studies/{study}/simulations",
           .operation = "StartSimulation",
           .answer = [known](const HttpCall& call) { return StartSimulation(known(), call); },
           .query = QueryKeys{}},
          {.method = "GET",
           .path = "/api/simulations/{simulation_id}",
           .operation = "GetSimulation",
           .answer = [known](const HttpCall& call) { return GetSimulation(known(), call); },
           .query = QueryKeys{}}};
}

}  // namespace espalier
