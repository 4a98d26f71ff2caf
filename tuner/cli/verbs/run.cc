// `tuner run`: what it accepts. tuner/cli/run_session.cc is what it does.

#include <memory>

#include "tuner/cli/plugin_argument.h"
#include "tuner/cli/run_session.h"
#include "tuner/cli/timeout_options.h"
#include "tuner/cli/verb.h"

namespace espalier {

VerbAction AddRun(CLI::App& app) {
  auto a = std::make_shared<RunArguments>();
  app.footer(app.get_footer() +
             PoliciesHelp("Policies, one of which the key \"policy\" of the study file may name"));
  app.add_option("study", a->study_file, "Study file")->required()->type_name("STUDY.json");
  app.add_option("--dir", a->directory,
                 "Folder for the database, logs, trials and report (default: espalier-runs/NAME)");
  a->node.AddTo(app);
  app.add_option("--grpc", a->grpc_address, "Address for agents and clients, HOST:PORT")
      ->capture_default_str();
  app.add_option("--http", a->http_address, "Address for REST, metrics and health, HOST:PORT")
      ->capture_default_str();
  app.add_option("--token-file", a->token_file,
                 "File with the token that clients and agents must present; required for addresses "
                 "other than loopback");
  app.add_flag("--plaintext", a->plaintext,
               "Allow addresses other than loopback, without encryption: `tuner run` has none, "
               "`tuner serve` has");
  AddTimeoutsTo(app, a->timeouts);
  app.add_option("--report", a->report, "Report to write (default: DIR/report.html)");
  auto* memory = app.add_flag(
      "--memory", a->memory,
      "Keep the study in memory only; it cannot be resumed. Its logs, trials and report "
      "go to DIR/memory");
  app.add_flag("--fresh", a->fresh, "Start over; an earlier run is moved to DIR/old-N")
      ->excludes(memory);
  app.add_flag("--quiet", a->quiet, "Print only the result");
  return [a] { return Run(*a); };
}

}  // namespace espalier
