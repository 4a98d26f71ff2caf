// `tuner`: service, agent and clients in one executable, without LibTorch.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/protocol.h"
#include "trial_runner/agent/processes/agent_watch.h"
#include "trial_runner/agent/ranks/supervisor.h"
#include "tuner/cli/display.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/log.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/options/command.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

constexpr Verb kVerbs[] = {
    {"init", "Write a first study file, by asking", "  tuner init\n  tuner init mine.json",
     AddInit},
    {"run", "Run a study on this machine, with a service and an agent of its own",
     "  tuner run study.json\n  tuner run study.json --dir out --slots 4", AddRun},
    {"serve", "Start the tuner service for a pool of machines",
     "  tuner serve --grpc 127.0.0.1:7077 --http 127.0.0.1:7078 --db espalier.db", AddServe},
    {"agent", "Add this machine's slots to a service's pool",
     "  tuner agent --join 10.0.0.1:7077 --slots 4 --token-file token", AddAgent},
    {"submit", "Submit a study to a running service",
     "  tuner submit study.json --service 10.0.0.1:7077 --wait", AddSubmit},
    {"ls", "List studies", "  tuner ls\n  tuner ls --db espalier.db\n  tuner ls --json", AddList},
    {"show", "Show a study's trials, or one trial in full",
     "  tuner show fashion_mnist\n  tuner show fashion_mnist --trial 3\n  tuner show fashion_mnist "
     "--trial 3 --json",
     AddShow},
    {"watch", "Follow a study live until it ends", "  tuner watch fashion_mnist --dir out",
     AddWatch},
    {"open", "Open the page of a running service in your browser, or that of one of its studies",
     "  tuner open\n  tuner open fashion_mnist\n  tuner open --print --dir out", AddOpen},
    {"stop", "Stop a study; it can be resumed", "  tuner stop fashion_mnist", AddStop},
    {"resume", "Resume a stopped or ended study", "  tuner resume fashion_mnist --trials 48",
     AddResume},
    {"rm", "Delete a study with its trials; one of the pool must have been stopped",
     "  tuner rm old_study", AddRemove},
    {"pin", "Pin a trial to a number of slots", "  tuner pin fashion_mnist 3 --slots 2", AddPin},
    {"cancel", "End one trial; if it is waiting, it never starts",
     "  tuner cancel fashion_mnist 3\n  tuner cancel fashion_mnist 3 --pruned --reason \"too "
     "slow\"",
     AddCancel},
    {"clone", "Begin a trial from the newest checkpoint of one that goes on, with other parameters",
     "  tuner clone fashion_mnist 3 --set lr=0.01", AddClone},
    {"logs", "Show a trial's output, whichever machine it ran on",
     "  tuner logs fashion_mnist 3\n  tuner logs fashion_mnist 3 -n 20", AddLogs},
    {"export", "Export a study's parameters, curves and slots as CSV or JSON",
     "  tuner export fashion_mnist --db espalier.db --format csv --out trials.csv", AddExport},
    {"report", "Write a report on a study, as one HTML page",
     "  tuner report fashion_mnist --db espalier.db --out report.html", AddReport},
    {"tell", "Report a metric value from within a trial (for programs without Espalier's library)",
     "  tuner tell --value 0.91 --step 3\n  tuner tell --value 0.93 --final", AddTell},
    {"simulate", "Simulate studies or recorded jobs in virtual time, under one or several policies",
     "  tuner simulate poolbench --trials 32 --slots 32 --nodes 4 --policy fixed --policy "
     "promise_goodput\n  tuner simulate study --db espalier.db --policy fixed --html page.html",
     AddSimulate},
    {"pool", "Show the pool's nodes and what holds each slot, or set the pool's policy",
     "  tuner pool\n  tuner pool --json", AddPool},
    {"drain", "Drain a node: its trials move elsewhere, and nothing new starts on it",
     "  tuner drain node-3\n  tuner drain node-3 --within 600\n  tuner drain node-3 --undo",
     AddDrain},
    {"token", "Create, list and revoke access tokens",
     "  tuner token create --role submit --name ada --expires 90d --out ada.token\n"
     "  tuner token ls\n  tuner token rm ada",
     AddTokens},
    {"connect",
     "Forward a local port to a service elsewhere, for programs that cannot send a token or use "
     "TLS",
     "  tuner connect oak:7077 --token-file ada.token\n"
     "  tuner connect oak:7077 oak:7078 --token-file ada.token",
     AddConnect},
    {"db", "Check, back up, restore or compact a database file; import and export Optuna's studies",
     "  tuner db check espalier.db\n  tuner db backup espalier.db copy.db\n"
     "  tuner db restore copy.db espalier.db\n"
     "  tuner db import-optuna example.db espalier.db",
     AddDb},
    {"space", "Check, show, sample or convert a search space",
     "  tuner space check space.json\n  tuner space describe space.json\n"
     "  tuner space sample space.json -n 10 --seed 7",
     AddSpace},
    {"plugins", "List samplers, pruners, policies, pool-size rules and engines, with their options",
     "  tuner plugins\n  tuner plugins asha\n  tuner plugins --json", AddPlugins},
    {"completion", "Print a script that completes command lines in a shell",
     "  source <(tuner completion bash)\n  tuner completion fish | source", AddCompletion},
    {"help", "Show the help of a command", "  tuner help run\n  tuner help db check", AddHelp},
    {"version", "Print the version", "  tuner version", AddVersion},
};

struct AddedVerb {
  CliCommand* command;
  VerbAction action;
};

int Main(int argc, char** argv) {
  CliCommand program("tuner", "Espalier: hyperparameter tuning with elastic trials",
                     TerminalWidth(0));
  program.RequireCommand();
  program.AddVersion("--version", "tuner " + Release(), "Print the version and exit");
  program.Footer(kExitCodesHelp);
  std::string level = "info";
  std::vector<AddedVerb> verbs;
  for (const Verb& verb : kVerbs) {
    CliCommand* command = program.AddCommand(verb.name, verb.purpose);
    command->Group("Commands");
    command->Footer(std::string("Example:\n") + verb.example + "\n");
    command
        ->AddOption("--log-level", level,
                    "Least important log lines: trace, debug, info, warn, error, off")
        .OneOf({"trace", "debug", "info", "warn", "error", "off"})
        .ShowDefault("info");
    verbs.push_back({command, verb.add(*command)});
  }
  const absl::StatusOr<CliCommand::Outcome> outcome = program.Parse(argc, argv);
  if (!outcome.ok()) {
    std::fprintf(stderr, "%s\n", std::string(outcome.status().message()).c_str());
    return static_cast<int>(ExitCode::kBadInput);
  }
  if (*outcome == CliCommand::Outcome::kShown) return static_cast<int>(ExitCode::kOk);
  SetUpLog(level);
  for (const AddedVerb& verb : verbs) {
    if (verb.command->parsed()) return static_cast<int>(verb.action());
  }
  return static_cast<int>(ExitCode::kBadInput);
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  // Debian's absl is built to look for deadlocks at each lock, and gRPC locks many times a message.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  try {
    if (const std::optional<int> code = espalier::RunAgentWatch(argc, argv)) return *code;
    if (const std::optional<int> code = espalier::RunRanks(argc, argv)) return *code;
    const int code = espalier::Main(argc, argv);
    // What a script saves must not be cut short without a word.
    errno = 0;
    if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || espalier::ReaderIsGone()) {
      return code;
    }
    std::fprintf(stderr, "tuner: cannot write to stdout: %s\n",
                 errno != 0 ? std::strerror(errno) : "something was lost");
    return code != 0 ? code : static_cast<int>(espalier::ExitCode::kFailed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tuner: %s\n", error.what());
    return static_cast<int>(espalier::ExitCode::kFailed);
  }
}
