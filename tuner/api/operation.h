#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>

#include "base/status.h"
#include "tuner/credentials/roles.h"

namespace espalier {
class Tuner;
}

namespace espalier::api {

// One operation of the public protocol: a row of the table in operations.h. The gRPC service, the
// HTTP routes, the rights and the clients' calls follow from it.
struct OperationFacts {
  const char* name;  // the rpc of espalier.v1.Tuner
  // Method and path in HTTP; empty: it is served over gRPC alone. A name in the path is the field
  // of the request that is called so, or else its "name": "POST /api/things/{thing}". The other
  // fields are the body's.
  const char* http;
  Role role;            // what it needs
  bool trial = false;   // a trial of the pool may call it too, for itself
  bool waits = false;   // for what may take long, such as a sampler's draw or an agent's answer
  const char* summary;  // for docs/openapi.json and docs/http.md
};

// Takes back a call that still waits and whose client has gone: it is answered soon, with
// CANCELLED. Does nothing to one that has been answered. May be null, where nothing waits; called
// once at most, from any thread, while the tuner is there.
using TakeBack = std::function<void()>;

template <typename Request, typename Response>
struct Operation : OperationFacts {
  // Waits for the owner of the core, and returns the core's own error where it has one.
  absl::StatusOr<Response> (*run)(Tuner& tuner, const Request& request);
  // The same, for callers that keep no thread for it: `done` is called once, from any thread. Null:
  // it is only run.
  TakeBack (*start)(Tuner& tuner, const Request& request,
                    std::function<void(absl::StatusOr<Response>)> done) = nullptr;
};

// What a function of the table takes and gives.
template <typename Function>
struct SignatureOf;
template <typename Request, typename Response>
struct SignatureOf<absl::StatusOr<Response> (*)(Tuner&, const Request&)> {
  using RequestType = Request;
  using ResponseType = Response;
};
template <auto kFunction>
using RequestOf = typename SignatureOf<decltype(kFunction)>::RequestType;
template <auto kFunction>
using ResponseOf = typename SignatureOf<decltype(kFunction)>::ResponseType;

// A row whose type tells which function it is of.
template <auto kFunction>
struct Row : Operation<RequestOf<kFunction>, ResponseOf<kFunction>> {};

template <auto kFunction, auto kStart = nullptr>
constexpr Row<kFunction> RowOf(OperationFacts facts) {
  return {{facts, kFunction, kStart}};
}

// The row in `table` of the operation whose function this is; nothing: there is none.
template <auto kFunction, typename... Rows>
constexpr std::optional<OperationFacts> FactsIn(const std::tuple<Rows...>& table) {
  std::optional<OperationFacts> facts;
  // By types and values: under sanitizers addresses are no constant expressions.
  const auto look = [&facts](const auto& row) {
    if constexpr (std::is_same_v<decltype(row), const Row<kFunction>&>) facts = row;
  };
  std::apply([&look](const auto&... row) { (look(row), ...); }, table);
  return facts;
}

}  // namespace espalier::api
