#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapters/optuna/dashboard/artifact_folder.h"
#include "tuner/api/tuner.h"

namespace httplib {
class Server;
}

namespace espalier::optuna_dashboard {

struct Options {
  // The folder of an installed optuna_dashboard, with index.html, public/ and img/. Empty: the
  // routes below /api are served, and a page that says how to get the others.
  std::string page_folder;
  std::string artifact_folder;  // empty: trials and studies have no files
};

// OK if the folders are there and hold what they should.
absl::Status Check(const Options& options);

// optuna-dashboard 0.21's routes, onto the tuner's own studies: its front end, taken from the
// installed Python package, finds here what its own server gives it. Where that one ends in
// "internal server error" a reason is given; a study that is renamed keeps its id. Errors are
// {"reason": ..}.
class Dashboard {
 public:
  // `answered` is told each request's route and status.
  using Answered = std::function<void(const std::string& route, int status)>;

  Dashboard(Tuner& tuner, const Options& options, Answered answered);
  ~Dashboard();

  // The server must not outlive this.
  void AddRoutes(httplib::Server& server);

  struct Listener;  // what the groups of routes share; this folder's own

 private:
  std::unique_ptr<Listener> listener_;
};

}  // namespace espalier::optuna_dashboard
