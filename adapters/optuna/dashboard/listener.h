#pragma once

// Private to this folder: what the groups of routes share.

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "adapters/optuna/dashboard/routes.h"
#include "httplib.h"
#include "search_spaces/json_text.h"

namespace espalier::optuna_dashboard {

struct Answer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  httplib::Headers headers{};
};

inline Answer NoContent() { return {204, ""}; }

struct Dashboard::Listener {
  Tuner& tuner;
  const Options options;
  const Answered answered;
  const ArtifactFolder artifacts;
  // Held from reading a note's version to writing the next, so that two writers cannot both win.
  std::mutex notes;

  using Act = std::function<absl::StatusOr<Answer>(const httplib::Request&)>;
  // `name` is what metrics call it.
  httplib::Server::Handler Route(std::string name, Act act);

  void AddPages(httplib::Server& server);
  void AddStudies(httplib::Server& server);
  void AddTrials(httplib::Server& server);
  void AddPreferences(httplib::Server& server);
  void AddArtifacts(httplib::Server& server);

  absl::Status Post(Event event) { return tuner.Post(std::move(event)).status; }
  absl::Status SetSystem(StudyId study, const std::string& key, const std::string& json) {
    return Post(SetStudyAttribute{study, true, key, json});
  }
};

using search_spaces_json::Json;

// The body, an object; an empty one counts as {}.
absl::StatusOr<Json> Body(const httplib::Request& request);

// The id that the n-th group of the path matched; NotFound for a number that no id has.
absl::StatusOr<std::int64_t> IdInPath(const httplib::Request& request, std::size_t group,
                                      std::string_view what);

}  // namespace espalier::optuna_dashboard
