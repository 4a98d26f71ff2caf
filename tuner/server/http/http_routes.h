#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tuner/server/http/http_route.h"

namespace espalier {

// The service's own routes; frontends bring further ones (frontend.h). docs/openapi.json describes
// each.
std::vector<HttpRoute> OperationRoutes();  // those of tuner/api/operations.h
std::vector<HttpRoute> SlotRoutes();
std::vector<HttpRoute> AnalysisRoutes();
class Simulations;
std::vector<HttpRoute> SimulationRoutes(Simulations* simulations);

// The text of the metrics, of a tuner.
using MetricsText = std::function<absl::StatusOr<std::string>(Tuner&)>;

// `dashboard` is the URL of optuna-dashboard's pages; empty: they are not served.
std::vector<HttpRoute> ServiceRoutes(std::string dashboard, MetricsText metrics);

// All of the routes above. Who calls them, and does not only read the list, gives all that they
// use, which outlives the routes.
std::vector<HttpRoute> OwnRoutes(std::string dashboard, MetricsText metrics,
                                 Simulations* simulations = nullptr);

// The route of a request, with the decoded values of the names in its path. 404: there is no such
// path; 405: it takes other methods, `allowed`.
struct FoundRoute {
  const HttpRoute* route = nullptr;
  std::map<std::string, std::string> path;
  std::string allowed;
};
FoundRoute FindRoute(const std::vector<HttpRoute>& routes, std::string_view method,
                     std::string_view target);

// Names the first key that the route does not take, and those that it does.
absl::Status CheckQuery(const HttpRoute& route, const std::map<std::string, std::string>& query);

// The text of docs/openapi.json as it was when this was built.
std::string_view OpenApiText();

}  // namespace espalier
