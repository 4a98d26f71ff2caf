// `tuner run`: what it accepts. tuner/cli/run_session.cc is what it does.

#include <memory>
#include <string>

#include "adapters/optuna/dashboard/server.h"
#include "tuner/cli/options/installed_dashboard.h"
#include "tuner/cli/options/optuna_options.h"
#include "tuner/cli/options/plugin_argument.h"
#include "tuner/cli/options/timeout_options.h"
#include "tuner/cli/options/web_options.h"
#include "tuner/cli/run_session.h"
#include "tuner/cli/verb.h"

namespace espalier {

VerbAction AddRun(CliCommand& command) {
  auto a = std::make_shared<RunArguments>();
  command.AppendToFooter(
      PoliciesHelp("Policies, one of which the key \"policy\" of the study file may name"));
  command.AddOption("study", a->study_file, "Study file")
      .Required()
      .TypeName("STUDY.json|STUDY.yaml");
  command.AddOption(
      "--dir", a->directory,
      "Folder for the database, logs, trials and report (default: espalier-runs/NAME)");
  a->node.AddTo(command);
  command.AddOption("--grpc", a->grpc_address, "Address for agents and clients, HOST:PORT")
      .ShowDefault();
  command
      .AddOption("--http", a->http_address,
                 "Address for the page, REST, metrics and health, HOST:PORT")
      .ShowDefault();
  AddProxyTo(command, a->proxied);
  command.AddOption(
      "--token-file", a->token_file,
      "File with the token that clients and agents must present; required for addresses "
      "other than loopback");
  command.AddFlag("--plaintext", a->plaintext,
                  "Allow addresses other than loopback, without encryption: `tuner run` has none, "
                  "`tuner serve` has");
  command
      .AddOption("--trials", a->trials,
                 "End after this many trials, whatever \"trials\" of the study file says")
      .Positive();
  command.AddOption(
      "--like", a->like,
      "Have the sampler learn from the trials of this study, too, which was run here");
  AddTimeoutsTo(command, a->timeouts);
  AddOptunaTo(command, a->optuna);
  command.AddOption("--report", a->report,
                    "Report to write (default: DIR/report.html, or "
                    "DIR/report-NAME.html where the former is another study's)");
  CliOption& memory = command.AddFlag(
      "--memory", a->memory,
      "Keep the study in memory only; it cannot be resumed. Its logs, trials and report "
      "go to DIR/memory");
  command.AddFlag("--fresh", a->fresh, "Start over; an earlier run is moved to DIR/old-N")
      .Excludes(memory);
  auto dashboard = std::make_shared<bool>(false);
  command.AddFlag(
      "--dashboard", *dashboard,
      "Also show the study on the pages of an installed optuna-dashboard, at a free port "
      "of this machine, while it runs: the run's own page (--open) needs no such package, shows "
      "slots and decisions, and can act");
  command.AddFlag("--open", a->open,
                  "Open the run's own page in your browser, and do not wait for it");
  command.AddFlag("--quiet", a->quiet, "Print only the result");
  return [a, dashboard] {
    if (!*dashboard) return Run(*a);
    const absl::StatusOr<std::string> folder = InstalledDashboard();
    absl::Status status = folder.status();
    if (status.ok()) {
      const optuna_dashboard::Options options{.page_folder = *folder, .artifact_folder = {}};
      status = optuna_dashboard::Check(options);
      a->start_dashboard = optuna_dashboard::Server(options);
    }
    if (!status.ok()) return Fail("run", ExitCode::kBadInput, std::string(status.message()));
    return Run(*a);
  };
}

}  // namespace espalier
