// `tuner`: service, agent and clients in one executable, without LibTorch.

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/log.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

constexpr Verb kVerbs[] = {
    {"run", "Tune on this machine: service, agent and slots in one go",
     "  tuner run study.json\n  tuner run study.json --dir out --slots 4", AddRun},
    {"serve", "Start the tuner service for a pool of machines",
     "  tuner serve --grpc 127.0.0.1:7077 --http 127.0.0.1:7078 --db espalier.db", AddServe},
    {"agent", "Bring this machine's slots into a service's pool",
     "  tuner agent --join 10.0.0.1:7077 --slots 4 --token-file token", AddAgent},
    {"submit", "Hand a study to a running service",
     "  tuner submit study.json --service 10.0.0.1:7077 --wait", AddSubmit},
    {"ls", "List studies", "  tuner ls\n  tuner ls --db espalier.db", AddList},
    {"show", "Show a study's trials, or one trial in full",
     "  tuner show fashion_mnist\n  tuner show fashion_mnist --trial 3", AddShow},
    {"watch", "Follow a study live until it ends", "  tuner watch fashion_mnist --dir out",
     AddWatch},
    {"stop", "Stop a study; it can be resumed", "  tuner stop fashion_mnist", AddStop},
    {"resume", "Take up a stopped or ended study again", "  tuner resume fashion_mnist --trials 48",
     AddResume},
    {"rm", "Delete a study that does not run, and its trials", "  tuner rm old_study", AddRemove},
    {"pin", "Hold a trial at a number of slots", "  tuner pin fashion_mnist 3 --slots 2", AddPin},
    {"cancel", "End one trial; one that waits never starts",
     "  tuner cancel fashion_mnist 3\n  tuner cancel fashion_mnist 3 --pruned --reason \"too "
     "slow\"",
     AddCancel},
    {"logs", "Show what a trial has printed, on whichever machine it ran",
     "  tuner logs fashion_mnist 3\n  tuner logs fashion_mnist 3 -n 20", AddLogs},
    {"export", "Write a study's parameters, curves and slots as CSV or JSON",
     "  tuner export fashion_mnist --db espalier.db --format csv --out trials.csv", AddExport},
    {"report", "Write a study's record as one HTML page",
     "  tuner report fashion_mnist --db espalier.db --out report.html", AddReport},
    {"tell", "Report a value of the running trial (for commands that know nothing of Espalier)",
     "  tuner tell --value 0.91 --step 3\n  tuner tell --value 0.93 --final", AddTell},
    {"simulate", "Run studies or recorded jobs on virtual time, under one or several policies",
     "  tuner simulate poolbench --trials 32 --slots 32 --nodes 4 --policy fixed --policy "
     "promise_goodput\n  tuner simulate study --db espalier.db --policy fixed --html page.html",
     AddSimulate},
    {"pool", "Show the nodes and who holds which slot", "  tuner pool", AddPool},
    {"drain", "Empty a node: trials move off it, nothing new starts there",
     "  tuner drain node-3\n  tuner drain node-3 --within 600\n  tuner drain node-3 --undo",
     AddDrain},
    {"token", "Make, list and end the tokens by which others are let in",
     "  tuner token create --role submit --name ada --expires 90d > ada.token\n  tuner token ls\n"
     "  tuner token rm ada",
     AddTokens},
    {"connect",
     "Open a service of another machine on loopback, for programs that send no token or TLS",
     "  tuner connect oak:7077 --token-file ada.token\n"
     "  tuner connect oak:7077 oak:7078 --token-file ada.token",
     AddConnect},
    {"db", "Check, back up or compact a database file; bring Optuna's studies in and out",
     "  tuner db check espalier.db\n  tuner db backup espalier.db copy.db\n"
     "  tuner db import-optuna example.db espalier.db",
     AddDb},
    {"space", "Check, show, sample or convert a search space",
     "  tuner space check space.json\n  tuner space describe space.json\n"
     "  tuner space sample space.json -n 10 --seed 7",
     AddSpace},
    {"plugins", "List samplers, pruners, policies, pool-size rules and engines, with their options",
     "  tuner plugins\n  tuner plugins --json", AddPlugins},
    {"version", "Print the version", "  tuner version", AddVersion},
};

struct AddedVerb {
  CLI::App* app;
  VerbAction action;
};

std::string VerbOf(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name();
}

std::string KnownVerbs() {
  std::string known;
  for (const Verb& row : kVerbs) known += std::string(known.empty() ? "" : ", ") + row.name;
  return known;
}

int ParseFailure(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  const std::string verb = VerbOf(app);
  const std::string who = verb.empty() ? "tuner" : "tuner " + verb;
  std::string message = error.what();
  // A misspelt word often makes a required one missing; the misspelt one is what to name.
  if (const std::vector<std::string> unknown = app.remaining(true); !unknown.empty()) {
    message = std::string(verb.empty() ? "unknown verb" : "unknown argument") + " \"" +
              unknown.front() + "\"";
  }
  if (verb.empty()) message += "; the verbs are " + KnownVerbs();
  std::fprintf(stderr, "%s: %s; see %s --help\n", who.c_str(), message.c_str(), who.c_str());
  return static_cast<int>(ExitCode::kBadInput);
}

int Main(int argc, char** argv) {
  CLI::App app{"Espalier: hyperparameter tuning with elastic trials", "tuner"};
  app.require_subcommand(1);
  app.footer(kExitCodesHelp);
  std::string level = "info";
  std::vector<AddedVerb> verbs;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.purpose);
    sub->footer(std::string("Example:\n") + verb.example + "\n");
    sub->add_option("--log-level", level,
                    "Least important log lines: debug, info, warn, error, off")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
        ->default_str("info");
    verbs.push_back({sub, verb.add(*sub)});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ParseFailure(app, error);
  }
  SetUpLog(level);
  for (const AddedVerb& verb : verbs) {
    if (verb.app->parsed()) return static_cast<int>(verb.action());
  }
  return static_cast<int>(ExitCode::kBadInput);
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  // Debian's absl is built to look for deadlocks at each lock, and gRPC locks many times a message.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  try {
    return espalier::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tuner: %s\n", error.what());
    return static_cast<int>(espalier::ExitCode::kFailed);
  }
}
