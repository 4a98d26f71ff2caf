#include "tuner/server/http/http_routes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/near_name.h"
#include "tuner/api/json.h"
#include "tuner/server/access/browser_sessions.h"
#include "tuner/server/http/event_streams.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_page_routes.h"

namespace espalier {

namespace {

HttpAnswer Health(const HttpCall& call) {
  return {call.tuner.Read([](const View&) {}), "ok\n", "text/plain"};
}

HttpAnswer AnswerMetrics(const absl::StatusOr<std::string>& text) {
  return {text.status(), text.ok() ? *text : "", "text/plain; version=0.0.4"};
}

HttpAnswer OpenApi(const HttpCall&) { return {absl::OkStatus(), std::string(OpenApiText())}; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                       HexDigit(text[i + 2]) >= 0;
    if (coded) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Takes what stands before the next slash off `path`.
std::string_view TakeSegment(std::string_view& path) {
  const std::size_t slash = path.find('/');
  const std::string_view segment = path.substr(0, slash);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  return segment;
}

// What stands for the names in `pattern`, of which the last is all the rest where `below` says so;
// nullopt where the path is another.
std::optional<std::map<std::string, std::string>> Match(std::string_view pattern,
                                                        std::string_view path, bool below) {
  std::map<std::string, std::string> names;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = TakeSegment(pattern);
    if (below && pattern.empty()) {
      names.emplace(wanted.substr(1, wanted.size() - 2), Decoded(path));
      return names;
    }
    const std::string_view given = TakeSegment(path);
    if (wanted.starts_with('{')) {
      if (given.empty()) return std::nullopt;
      names.emplace(wanted.substr(1, wanted.size() - 2), Decoded(given));
    } else if (wanted != given) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return names;
}

}  // namespace

std::vector<HttpRoute> ServiceRoutes(std::string dashboard, MetricsText metrics) {
  const auto text = [metrics = std::move(metrics)](const HttpCall& call) {
    return AnswerMetrics(metrics(call.tuner));
  };
  std::vector<HttpRoute> routes = PageRoutes(std::move(dashboard), WebAssets());
  for (HttpRoute& route : std::vector<HttpRoute>{{"GET", "/healthz", "healthz", Health},
                                                 {"GET", "/metrics", "metrics", text},
                                                 {.method = "GET",
                                                 .path = "/api/openapi.json",
                                                 .operation = "openapi",
                                                 .answer = OpenApi,
                                                 .query = QueryKeys{}}}) {
    routes.push_back(std::move(route));
  }
  return routes;
}

std::vector<HttpRoute> EventRoutes(EventStreams* streams) {
  return {{.method = "GET",
           .path = "/api/view/events",
           .operation = "events",
           .answer =
               [streams](const HttpCall& call) {
                 ESPALIER_CHECK(streams != nullptr, "a service that answers has streams");
                 return streams->Open(call);
               },
           .query = QueryKeys{"after", "study"}}};
}

std::vector<HttpRoute> SessionRoutes(BrowserSessions* sessions) {
  const auto with = [](std::string cookie) {
    HttpAnswer answer{absl::OkStatus(), "{}"};
    if (!cookie.empty()) answer.headers = {{"Set-Cookie", std::move(cookie)}};
    return answer;
  };
  const auto begin = [sessions, with](const HttpCall& call) {
    if (!call.code.empty()) {
      absl::StatusOr<std::string> cookie = sessions->BeginByCode(call.code);
      return cookie.ok() ? with(*std::move(cookie)) : ToAnswer(cookie.status());
    }
    // The service's own user needs none.
    return with(call.token.empty() ? "" : sessions->Begin(call.token));
  };
  const auto end = [sessions, with](const HttpCall& call) {
    return with(sessions->End(call.cookies));
  };
  return {{.method = "GET",
           .path = "/api/session",
           .operation = "GetSession",
           .answer = [with](const HttpCall&) { return with(""); },
           .query = QueryKeys{}},
          {.method = "POST",
           .path = "/api/session",
           .operation = "BeginSession",
           .answer = begin,
           .query = QueryKeys{},
           .begins_session = true},
          {.method = "DELETE",
           .path = "/api/session",
           .operation = "EndSession",
           .answer = end,
           .query = QueryKeys{}}};
}

std::vector<HttpRoute> OwnRoutes(std::string dashboard, MetricsText metrics, const RoutesUse& use) {
  std::vector<HttpRoute> all = ServiceRoutes(std::move(dashboard), std::move(metrics));
  for (const auto& routes :
       {OperationRoutes(), SlotRoutes(), EventRoutes(use.streams), SessionRoutes(use.sessions),
        ViewRoutes(use.revisions), AnalysisRoutes(), SimulationRoutes(use.simulations)}) {
    all.insert(all.end(), routes.begin(), routes.end());
  }
  return all;
}

FoundRoute FindRoute(const std::vector<HttpRoute>& routes, std::string_view method,
                     std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  if (method == "HEAD") method = "GET";
  FoundRoute found;
  for (const HttpRoute& route : routes) {
    auto names = Match(route.path, path, route.below);
    if (!names) continue;
    if (route.method == method) return {&route, *std::move(names), ""};
    absl::StrAppend(&found.allowed, found.allowed.empty() ? "" : ", ", std::string(route.method));
  }
  return found;
}

absl::Status CheckQuery(const HttpRoute& route,
                        const std::multimap<std::string, std::string>& query) {
  if (!route.query) return absl::OkStatus();
  for (const auto& [key, value] : query) {
    const std::string of =
        absl::StrCat(" of ", std::string(route.method), " ", std::string(route.path));
    if (std::ranges::find(*route.query, key) == route.query->end()) {
      const std::string_view meant = NearName(key, *route.query);
      return absl::InvalidArgumentError(absl::StrCat(
          "query ", QuoteJson(key), ": unknown key", of,
          meant.empty() ? "" : absl::StrCat(", did you mean ", QuoteJson(meant), "?"),
          route.query->empty() ? ", which takes none"
          : meant.empty()      ? ". Known: "
                               : " Known: ",
          absl::StrJoin(*route.query, ", ",
                        [](std::string* text, std::string_view name) { text->append(name); })));
    }
    if (query.count(key) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("query ", QuoteJson(key), of, ": is given ",
                                                     query.count(key), " times, and takes one"));
    }
  }
  return absl::OkStatus();
}

}  // namespace espalier
