#include <unistd.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tuner/core/state/step.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/program_run.h"
#include "tuner/server/engines/reconciling_engine.h"

namespace espalier::engines {

namespace {

// The batch script of every job. What it runs are its arguments, which no shell reads. The agent
// takes the place of the shell, so that it gets the signals that are for it alone (B:).
constexpr const char* kScript = "#!/bin/sh\nexec \"$@\"\n";
constexpr const char* kScriptFile = "/dev/stdin";
constexpr const char* kFields = "%i|%T|%N|%r|%j";  // the name is last: it may hold anything
constexpr std::size_t kFieldCount = 5;
constexpr double kLimit_s = 45;  // Slurm's commands try for some time to reach the controller

// Reasons for which jobs wait every day.
bool Usual(absl::string_view reason) {
  static const std::set<absl::string_view> kUsual = {"None",      "Priority", "Resources",
                                                     "BeginTime", "Cleaning", "Prolog"};
  return kUsual.contains(reason);
}

MachineState StateOf(absl::string_view state) {
  static const std::set<absl::string_view> kPending = {
      "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"};
  static const std::set<absl::string_view> kEnding = {"COMPLETING", "STAGE_OUT"};
  static const auto kEnded =
      std::set<absl::string_view>{"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE", "FAILED",
                                  "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "REVOKED",  "TIMEOUT"};
  if (kPending.contains(state)) return MachineState::kPending;
  if (kEnding.contains(state)) return MachineState::kEnding;
  if (kEnded.contains(state)) return MachineState::kEnded;
  return MachineState::kRunning;
}

// Jobs of one node each, known by their names. An id is only used together with the name: a
// controller that has lost a job gives its id out again.
class SlurmProvider final : public MachineProvider {
 public:
  SlurmProvider(std::vector<std::string> sbatch, EngineCapabilities capabilities)
      : sbatch_(std::move(sbatch)), capabilities_(capabilities) {}

  EngineCapabilities capabilities() const override { return capabilities_; }

  absl::Status Request(const MachineOrder& order) override {
    std::vector<std::string> words = {"sbatch", "--parsable"};
    const auto add = [&words](const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    add(sbatch_);
    // A per cent sign stands for something else in the name of the file.
    add(std::vector<std::string>{"--job-name=" + order.key, "--nodes=1", "--ntasks=1",
                                 "--no-requeue", "--open-mode=append",
                                 "--output=" + absl::StrReplaceAll(order.log, {{"%", "%%"}}),
                                 "--chdir=/", "--", kScriptFile});
    add(order.command);
    return Run(words, kScript).status();
  }

  // The agent of a job that runs is told alone, not its trials: it ends them in order.
  absl::Status Release(const Machine& machine, Leave leave) override {
    std::vector<std::string> words = {"scancel", "--quiet", "--name=" + machine.key};
    if (leave == Leave::kInTime && machine.state == MachineState::kRunning) {
      words.insert(words.end(), {"--batch", "--signal=TERM"});
    }
    words.insert(words.end(), {"--", machine.id});
    ESPALIER_ASSIGN_OR_RETURN(const ProgramEnd end,
                              RunProgram({.command = words, .limit_s = kLimit_s}));
    // Where there is no such job any more it fails, and with --quiet has nothing to say.
    if (end.exit_code == 0 || end.errors.empty()) return absl::OkStatus();
    return absl::UnavailableError(FailureOf(words.front(), end));
  }

  absl::StatusOr<std::vector<Machine>> List(const std::string& key_prefix) override {
    ESPALIER_ASSIGN_OR_RETURN(const std::string text,
                              Run(std::vector<std::string>{"squeue", "--noheader", "--states=all",
                                                           absl::StrCat("--user=", geteuid()),
                                                           absl::StrCat("--format=", kFields)},
                                  ""));
    std::vector<Machine> machines;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const std::vector<absl::string_view> fields =
          absl::StrSplit(line, absl::MaxSplits('|', kFieldCount - 1));
      if (fields.size() != kFieldCount) {
        return absl::InternalError(absl::StrCat("squeue answers \"", line, "\", not ", kFields));
      }
      if (!std::string_view(fields[4].data(), fields[4].size()).starts_with(key_prefix)) continue;
      machines.push_back(MachineOf(fields));
    }
    return machines;
  }

 private:
  static Machine MachineOf(const std::vector<absl::string_view>& fields) {
    Machine machine{.key = std::string(fields[4]),
                    .id = std::string(fields[0]),
                    .state = StateOf(fields[1]),
                    .host = std::string(fields[2])};
    const bool waits = machine.state == MachineState::kPending && !Usual(fields[3]);
    const bool ended = machine.state == MachineState::kEnded && fields[1] != "COMPLETED";
    if (waits) machine.reason = absl::StrCat("Slurm gives the reason ", fields[3]);
    if (ended)
      machine.reason =
          absl::StrCat(fields[1], Usual(fields[3]) ? "" : ", ", Usual(fields[3]) ? "" : fields[3]);
    return machine;
  }

  static absl::StatusOr<std::string> Run(const std::vector<std::string>& words,
                                         const std::string& input) {
    ESPALIER_ASSIGN_OR_RETURN(ProgramEnd end,
                              RunProgram({.command = words, .input = input, .limit_s = kLimit_s}));
    if (end.exit_code == 0) return std::move(end.output);
    return absl::UnavailableError(FailureOf(words.front(), end));
  }

  const std::vector<std::string> sbatch_;
  const EngineCapabilities capabilities_;
};

// A text option of the engine, and the option of sbatch that it stands for.
struct SbatchOption {
  const char* name;
  const char* sbatch;
};
constexpr SbatchOption kSbatchOptions[] = {
    {"partition", "--partition="}, {"account", "--account="}, {"qos", "--qos="},
    {"gpus", "--gpus-per-node="},  {"gres", "--gres="},       {"cpus", "--cpus-per-task="},
    {"memory", "--mem="},          {"time", "--time="}};

// The user's own come first, so that none takes the place of what we rely on.
std::vector<std::string> SbatchWords(const OptionValues& options) {
  std::vector<std::string> words = options.Texts("sbatch");
  for (const SbatchOption& option : kSbatchOptions) {
    const std::string value = options.Text(option.name);
    if (!value.empty()) words.push_back(absl::StrCat(option.sbatch, value));
  }
  if (options.Whole("notice_s") > 0) {
    words.push_back(absl::StrCat("--signal=B:USR1@", options.Whole("notice_s")));
  }
  return words;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeSlurm(const OptionValues& options,
                                                  const NodeAgents& agents) {
  ESPALIER_ASSIGN_OR_RETURN(NodeDirectory directory, NodeDirectory::Open(agents.directory));
  const std::int64_t notice_s = options.Whole("notice_s");
  NodeAgents jobs = agents;
  for (const std::string& word : NoticeArguments(agents, static_cast<double>(notice_s))) {
    jobs.arguments.push_back(word);
  }
  if (const std::string agent = options.Text("agent"); !agent.empty()) jobs.executable = agent;
  return std::make_unique<ReconcilingEngine>(
      std::make_unique<SlurmProvider>(SbatchWords(options),
                                      EngineCapabilities{.notice_s = static_cast<double>(notice_s),
                                                         .start_s = 5,
                                                         .queue_s = options["queue_s"],
                                                         .most_nodes = kMaxEngineNodes,
                                                         .elsewhere = true}),
      std::move(jobs), std::move(directory), MachineTimes{.end_grace_s = options["end_grace_s"]});
}

}  // namespace

PluginRow<Engine, NodeAgents> SlurmRow() {
  const auto text = [](std::string_view name, std::string_view meaning) {
    return PluginOption{.name = name, .meaning = meaning, .text = true};
  };
  return {
      {.name = "slurm",
       .summary = "nodes are Slurm jobs, each on one Slurm node, that run an agent",
       .options =
           std::vector<PluginOption>{
               text("partition", "partition of the jobs, or several with commas"),
               text("account", "account that the jobs are charged to"),
               text("qos", "quality of service"),
               text("gpus", "GPUs of each job, as for --gpus-per-node: 2, a100:4"),
               text("gres", "generic resources of each job, as for --gres"),
               text("cpus", "CPUs of each job"),
               text("memory", "memory of each job, as for --mem: 64G"),
               text("time", "time limit of each job, as for --time: 8:00:00"),
               text("agent", "path of `tuner` on Slurm's nodes, if it differs from the service's"),
               {.name = "sbatch",
                .meaning = "a further argument for sbatch",
                .text = true,
                .repeated = true},
               {.name = "notice_s",
                .default_value = 60,
                .most = 65535,
                .whole = true,
                .meaning = "seconds of notice before a job's end; 0: none"},
               {.name = "queue_s",
                .default_value = 86400,
                .meaning = "seconds that a job may wait in the queue before it is given up"},
               {.name = "end_grace_s",
                .default_value = 30,
                .meaning = "seconds that an agent gets to end before its job is cancelled"}}},
      MakeSlurm};
}

}  // namespace espalier::engines
