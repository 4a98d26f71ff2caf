#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/status.h"
#include "tuner/server/loop.h"
#include "tuner/server/metrics.h"

namespace espalier {

namespace nni {
class Experiments;
}

// One call of the HTTP door, as its route sees it.
struct HttpCall {
  Loop& loop;
  Metrics& metrics;
  std::map<std::string, std::string> path;   // by the names in HttpRoute::path
  std::map<std::string, std::string> query;  // the first of each name
  std::string request_key;                   // header Idempotency-Key, without quotes around it
  const std::string& body;
  const std::string& dashboard;  // where its pages are, a URL; empty: they are not served
  nni::Experiments& nni;
  std::string service_url;  // where the client has reached us, without a path
};

struct HttpAnswer {
  absl::Status status;  // where it is not OK, the rest says nothing
  std::string body;
  const char* type = "application/json";
  int code = 200;
};

struct HttpRoute {
  std::string_view method;
  std::string_view path;  // "/api/trials/{trial_id}/tell"
  const char* operation;  // by which it is counted
  HttpAnswer (*answer)(const HttpCall& call);
};

// All that the door answers. docs/openapi.json describes each.
std::vector<HttpRoute> ServiceRoutes();
std::vector<HttpRoute> StudyRoutes();
std::vector<HttpRoute> TrialRoutes();
std::vector<HttpRoute> SlotRoutes();
std::vector<HttpRoute> NniRoutes();
std::vector<HttpRoute> HttpRoutes();

// The route of a request, with what stands for the names in its path (decoded). 404: no such path;
// 405: it takes other methods, `allowed`.
struct FoundRoute {
  const HttpRoute* route = nullptr;
  std::map<std::string, std::string> path;
  std::string allowed;
};
FoundRoute FindRoute(const std::vector<HttpRoute>& routes, std::string_view method,
                     std::string_view target);

// The text of docs/openapi.json as it was when this was built.
std::string_view OpenApiText();

}  // namespace espalier
