#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tuner/server/http/http_route.h"
#include "tuner/web/feed/revision_log.h"

namespace espalier {

// The service's own routes; frontends bring further ones (frontend.h). docs/openapi.json describes
// each.
std::vector<HttpRoute> OperationRoutes();  // those of tuner/api/operations.h
std::vector<HttpRoute> SlotRoutes();
// What pages show: tuner/web/view. `revisions` outlives the routes.
std::vector<HttpRoute> ViewRoutes(const RevisionLog* revisions);
std::vector<HttpRoute> AnalysisRoutes();
class Simulations;
std::vector<HttpRoute> SimulationRoutes(Simulations* simulations);

// The text of the metrics, of a tuner.
using MetricsText = std::function<absl::StatusOr<std::string>(Tuner&)>;

// `dashboard` is the URL of optuna-dashboard's pages; empty: they are not served.
std::vector<HttpRoute> ServiceRoutes(std::string dashboard, MetricsText metrics);

class BrowserSessions;
class EventStreams;
std::vector<HttpRoute> EventRoutes(EventStreams* streams);
std::vector<HttpRoute> SessionRoutes(BrowserSessions* sessions);

// What routes use of the service; it outlives them.
struct RoutesUse {
  EventStreams* streams = nullptr;
  BrowserSessions* sessions = nullptr;
  const RevisionLog* revisions = nullptr;
  Simulations* simulations = nullptr;
};

// All of the routes above. Those who call them, and not only read the list, give all that they use.
std::vector<HttpRoute> OwnRoutes(std::string dashboard, MetricsText metrics,
                                 const RoutesUse& use = {});

// The route of a request, with the decoded values of the names in its path. 404: there is no such
// path; 405: it takes other methods, `allowed`.
struct FoundRoute {
  const HttpRoute* route = nullptr;
  std::map<std::string, std::string> path;
  std::string allowed;
};
FoundRoute FindRoute(const std::vector<HttpRoute>& routes, std::string_view method,
                     std::string_view target);

// Names the first key that the route does not take, which was probably meant, and those that it
// does; or one that is given several times.
absl::Status CheckQuery(const HttpRoute& route,
                        const std::multimap<std::string, std::string>& query);

// The text of docs/openapi.json as it was when this was built.
std::string_view OpenApiText();

}  // namespace espalier
