#include "tuner/cli/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/open_files.h"
#include "trial_runner/agent/agent.h"
#include "tuner/cli/client.h"
#include "tuner/cli/display.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/frontends.h"
#include "tuner/cli/interrupts.h"
#include "tuner/cli/like_elsewhere.h"
#include "tuner/cli/local_runs.h"
#include "tuner/cli/log.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/report/page.h"
#include "tuner/cli/run_checks.h"
#include "tuner/cli/served_page.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"
#include "tuner/server/service.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

// For trials to save and leave after Ctrl-C: the service ends those that do not get on, and what
// gets on is not cut off here either.
constexpr double kStopBound_s = 86400;
constexpr double kEndBound_s = 30;  // for what is left after the study's end and its exit timeout
constexpr const char* kNodeName = "local";
constexpr const char* kAnyLocalPort = "127.0.0.1:0";
constexpr std::size_t kShownValue = 60;  // bytes of a key's value that a message shows at most

// A new study would share the slots with what an earlier run was cut off from.
absl::Status CheckOtherStudies(const v1::ListStudiesResponse& kept, const RunPlan& plan) {
  const v1::Study* cut_off = nullptr;
  for (const v1::Study& study : kept.studies()) {
    if (study.name() == plan.spec.name) return absl::OkStatus();
    if (study.state() == v1::STUDY_RUNNING && !study.ask_and_tell()) cut_off = &study;
  }
  if (cut_off == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} holds another study, {}, that was cut off while it ran: continue it with "
                  "`tuner run` of its study file and --dir {}, or choose another --dir for {}",
                  plan.directory, cut_off->name(), plan.directory, plan.spec.name));
}

// Limits of the study file that are not those of the stored study.
struct ChangedLimits {
  std::optional<std::int64_t> max_trials;
  std::optional<double> time_limit_s;
  std::string text;  // "trials 4 -> 6"

  bool any() const { return max_trials.has_value() || time_limit_s.has_value(); }
};

std::string LimitText(const char* key, double before, double after) {
  return before > 0 ? fmt::format("{} {} -> {}", key, before, after)
                    : fmt::format("{} none -> {}", key, after);
}

// What an earlier run has left, which the study goes on with; empty if there is nothing.
std::string EarlierTrialsText(const v1::Study& before, std::int64_t max_trials) {
  std::int64_t trials = 0;
  std::int64_t failed = 0;
  for (const auto& [state, count] : before.trials_by_state()) {
    trials += count;
    if (state == StateName(v1::TRIAL_FAIL)) failed += count;
  }
  if (trials == 0) return "";
  return fmt::format("{} from before{} {}{}; --fresh starts over without {}",
                     Count(trials, "trial"),
                     failed > 0 ? fmt::format(", {} of them failed,", failed) : "",
                     trials == 1 ? "counts" : "count",
                     max_trials > 0 ? fmt::format(" among the study's {}", max_trials) : "",
                     trials == 1 ? "it" : "them");
}

// The two values of a key that differs, if they are short.
std::string ValuesText(const std::string& stored, const std::string& given) {
  if (std::max(stored.size(), given.size()) > kShownValue || stored == given) return "";
  const auto shown = [](const std::string& json) { return json == "null" ? "none" : json; };
  return fmt::format(" ({} there, {} here)", shown(stored), shown(given));
}

// A stored study can be given other limits on trials and time; an error says what else differs.
absl::StatusOr<ChangedLimits> LimitsToChange(const v1::Study& stored, const RunPlan& plan) {
  ESPALIER_ASSIGN_OR_RETURN(
      const StudySpec before,
      ParseStudy(stored.study_json(), DatabasePath(plan.directory), stored.directory()));
  std::vector<std::string> changes;
  std::vector<std::string> refused;
  ChangedLimits limits;
  StudySpec given = plan.spec;
  if (given.like.study == before.like.study) given.like = before.like;  // which has its trials
  for (const auto& [key, was, is] : DifferencesOf(before, given)) {
    if (key == "trials" && plan.spec.max_trials > 0) {
      if (plan.spec.max_trials == stored.max_trials()) continue;
      limits.max_trials = plan.spec.max_trials;
      changes.push_back(LimitText("trials", static_cast<double>(stored.max_trials()),
                                  static_cast<double>(plan.spec.max_trials)));
    } else if (key == "time_limit_s" && plan.spec.time_limit_s > 0) {
      if (plan.spec.time_limit_s == stored.time_limit_s()) continue;
      limits.time_limit_s = plan.spec.time_limit_s;
      changes.push_back(LimitText("time_limit_s", stored.time_limit_s(), plan.spec.time_limit_s));
    } else {
      refused.push_back(fmt::format("\"{}\" differs{}", key, ValuesText(was, is)));
    }
  }
  limits.text = absl::StrJoin(changes, ", ");
  if (refused.empty()) return limits;
  return absl::FailedPreconditionError(fmt::format(
      "{} holds a study \"{}\" with another definition: {}. Put it back in {} (only \"trials\" and "
      "\"time_limit_s\" may be changed, not removed), start over with --fresh, or choose another "
      "name or another --dir",
      plan.directory, plan.spec.name, absl::StrJoin(refused, ", "), plan.arguments.study_file));
}

// In the run's folder, which may also hold the report of another study that was run there.
std::string ReportFile(const RunPlan& plan) {
  const std::string path = (fs::path(plan.directory) / "report.html").string();
  std::error_code error;
  const bool own =
      !fs::exists(path, error) || IsReportOn(plan.spec.name, ReadFile(path).value_or(""));
  if (own) return path;
  return (fs::path(plan.directory) / ("report-" + FileNameOf(plan.spec.name) + ".html")).string();
}

// Service, agent and a client of them in this process, from start to shutdown.
class Session {
 public:
  explicit Session(RunPlan plan) : plan_(std::move(plan)) {}

  ExitCode Run() {
    if (const absl::Status status = Start(); !status.ok()) {
      return Fail("run", ExitCode::kBadInput, std::string(status.message()));
    }
    if (study_.state() == v1::STUDY_COMPLETE && !limits_.any()) return AlreadyComplete();
    if (const absl::Status status = Resume(); !status.ok()) return Fail("run", status);
    Announce();
    if (plan_.arguments.open) OpenInBrowser("run", service_->page());
    if (const absl::Status status = StartAgent(); !status.ok()) {
      End();
      return Fail("run", ExitCode::kBadInput, std::string(status.message()));
    }
    const absl::StatusOr<ExitCode> code = Follow();
    End();
    if (!code.ok()) return Fail("run", ExitCode::kFailed, std::string(code.status().message()));
    return *code;
  }

 private:
  absl::Status Start() {
    ServiceOptions options;
    options.grpc_address = plan_.arguments.grpc_address;
    options.http_address = plan_.arguments.http_address;
    options.database = plan_.arguments.memory ? "" : DatabasePath(plan_.directory);
    options.proxied = plan_.arguments.proxied;
    options.token = plan_.token;
    options.plaintext = plan_.arguments.plaintext;
    options.timeouts = plan_.arguments.timeouts;
    options.optuna = plan_.arguments.optuna;
    options.tuner_program = OwnExecutable();
    options.frontends = AllFrontends();
    options.start_dashboard = plan_.arguments.start_dashboard;
    if (options.start_dashboard != nullptr) options.dashboard_address = kAnyLocalPort;
    options.policy.reset();  // the study's own is followed
    options.failed = [](const std::string& why) {
      RestoreTerminal();
      Fail("run", ExitCode::kFailed, why);
    };
    ESPALIER_RETURN_IF_ERROR(LogToFile(LogPath()));
    absl::StatusOr<std::unique_ptr<Service>> service = Service::Start(options);
    if (!service.ok()) {
      return plan_.arguments.memory ? service.status()
                                    : OrInUse(service.status(), plan_.directory, plan_.spec.name);
    }
    service_ = *std::move(service);
    client_ = std::make_unique<Client>(
        ClientOptions{.address = service_->grpc_address(), .token = plan_.token});
    ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse kept,
                              client_->Call<api::ListStudies>({}));
    ESPALIER_RETURN_IF_ERROR(CheckOtherStudies(kept, plan_));
    ESPALIER_RETURN_IF_ERROR(TakeTrialsOfRun(kept, plan_.arguments.study_file, plan_.spec));
    ESPALIER_RETURN_IF_ERROR(CreateOrFindStudy());
    ESPALIER_ASSIGN_OR_RETURN(before_, Glance(*client_, plan_.spec.name));
    return absl::OkStatus();
  }

  absl::Status CreateOrFindStudy() {
    absl::StatusOr<api::CreatedStudy> created = api::CreateParsedStudy(
        service_->tuner(), {plan_.spec, /*exist_ok=*/true}, plan_.arguments.study_file);
    if (absl::IsFailedPrecondition(created.status())) {
      ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails stored, Glance(*client_, plan_.spec.name));
      ESPALIER_ASSIGN_OR_RETURN(limits_, LimitsToChange(stored.study(), plan_));
      study_ = stored.study();
      return absl::OkStatus();
    }
    ESPALIER_RETURN_IF_ERROR(created.status());
    study_ = std::move(created->study);
    return absl::OkStatus();
  }

  ExitCode AlreadyComplete() {
    const absl::StatusOr<v1::StudyDetails> details = FullStudy();
    if (!details.ok()) return Fail("run", details.status());
    std::printf(
        "study %s is already complete; to go on where a limit has ended it, raise the limit "
        "(\"trials\" or \"time_limit_s\") in %s and run it again; --fresh starts over\n%s",
        plan_.spec.name.c_str(), plan_.arguments.study_file.c_str(), ResultText(*details).c_str());
    service_->Shutdown();
    return ExitCode::kOk;
  }

  absl::Status Resume() {
    if (study_.state() == v1::STUDY_RUNNING && !limits_.any()) return absl::OkStatus();
    v1::ResumeStudyRequest request;
    request.set_name(plan_.spec.name);
    request.set_max_trials(limits_.max_trials.value_or(0));
    request.set_time_limit_s(limits_.time_limit_s.value_or(0));
    ESPALIER_ASSIGN_OR_RETURN(study_, client_->Call<api::ResumeStudy>(request));
    resumed_ = true;
    return absl::OkStatus();
  }

  void Announce() const {
    if (plan_.arguments.quiet) return;
    const std::string earlier = EarlierTrialsText(before_.study(), study_.max_trials());
    const bool going_on = resumed_ || !earlier.empty();
    std::printf("%s study %s on %s%s\n", going_on ? "resuming" : "running", plan_.spec.name.c_str(),
                Count(plan_.agent.slots, "slot").c_str(), Aim().c_str());
    if (limits_.any()) {
      std::printf("going on with study %s: %s\n", plan_.spec.name.c_str(), limits_.text.c_str());
    }
    if (!earlier.empty()) std::printf("%s\n", earlier.c_str());
    if (!service_->page().url.empty()) {
      std::printf("  page      %s\n",
                  absl::StrJoin(PageLines(service_->page()), "\n            ").c_str());
    }
    std::printf("  database  %s\n",
                plan_.arguments.memory ? "in memory" : DatabasePath(plan_.directory).c_str());
    std::printf("  log       %s\n", LogPath().c_str());
    std::printf("  trials    %s\n", TrialsPath(plan_.directory).c_str());
    std::printf("  service   gRPC %s", service_->grpc_address().c_str());
    if (!service_->http_address().empty()) {
      std::printf(", HTTP http://%s", service_->http_address().c_str());
    }
    if (const std::string dashboard = service_->dashboard_address(); !dashboard.empty()) {
      std::printf("\n  dashboard http://%s/dashboard", dashboard.c_str());
    }
    if (OthersReach(service_->grpc_address()) || OthersReach(service_->http_address())) {
      std::printf("\n  %s", kInTheClear);
    }
    std::printf("\n\n");
    std::fflush(stdout);
  }

  // Of a job, nothing.
  std::string Aim() const {
    if (!plan_.spec.has_metric) return "";
    if (study_.metrics_size() > 1) return ", for the Pareto front of " + MetricNames(study_);
    return fmt::format(", {} {}", study_.maximize() ? "maximizing" : "minimizing",
                       MetricName(study_));
  }

  absl::Status StartAgent() {
    ESPALIER_RETURN_IF_ERROR(WriteServiceFile(
        plan_.directory,
        {service_->grpc_address(), service_->http_address(), !plan_.token.empty()}));
    wrote_service_file_ = true;
    AgentOptions options = plan_.agent;
    options.service_address = service_->grpc_address();
    options.http_address = service_->http_address();
    options.node_name = kNodeName;
    options.directory = TrialsPath(plan_.directory);
    options.token = plan_.token;
    options.keep_checkpoints = false;  // there is no other node
    options.tuner_executable = OwnExecutable();
    options.watched = true;
    ESPALIER_ASSIGN_OR_RETURN(agent_, Agent::Start(options));
    return absl::OkStatus();
  }

  absl::StatusOr<ExitCode> Follow() {
    const std::unique_ptr<StudyDisplay> display = MakeDisplay(plan_.arguments.quiet);
    display->StartAfter(before_);
    ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails last,
                              FollowStudy(*client_, plan_.spec.name, *display, interrupts_,
                                          /*away_limit_s=*/0));  // it is of this process
    v1::Study study = last.study();
    const bool stopped_here = interrupts_.interrupted() && study.state() == v1::STUDY_RUNNING;
    if (stopped_here) {
      display->Say("stopping: trials save what they can (Ctrl-C again: at once)");
      ESPALIER_ASSIGN_OR_RETURN(study, client_->Call<api::StopStudy>(StudyNamed(plan_.spec.name)));
    }
    const double exit_s = Merge(plan_.spec.timeouts, plan_.arguments.timeouts).exit_s;
    const double bound_s = stopped_here ? kStopBound_s : kEndBound_s + exit_s;
    const absl::Status freed = AwaitSlotsFree(*client_, plan_.spec.name, *display, interrupts_,
                                              bound_s + plan_.spec.stop_grace_s);
    display->Finish();
    if (!freed.ok()) std::fprintf(stderr, "tuner run: %s\n", std::string(freed.message()).c_str());
    const absl::Status concluded = Conclude();
    if (study.state() == v1::STUDY_STOPPED) SayHowToResume();
    ESPALIER_RETURN_IF_ERROR(concluded);
    return ExitCodeOf(study.state());
  }

  absl::Status Conclude() const {
    ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, FullStudy());
    const std::string path =
        plan_.arguments.report.empty() ? ReportFile(plan_) : plan_.arguments.report;
    std::printf("%s%s", plan_.arguments.quiet ? "" : "\n", ResultText(details).c_str());
    std::fflush(stdout);
    ESPALIER_ASSIGN_OR_RETURN(const std::string page, ReportPage(details, Seconds(Now())));
    ESPALIER_RETURN_IF_ERROR(WriteFile(path, page));
    std::printf("report: %s\n", path.c_str());
    std::fflush(stdout);
    return absl::OkStatus();
  }

  void SayHowToResume() const {
    if (plan_.arguments.memory) {
      std::printf("it was kept in memory only and cannot be resumed\n");
      return;
    }
    std::printf("stopped; to continue: tuner run %s --dir %s\n", plan_.arguments.study_file.c_str(),
                plan_.directory.c_str());
  }

  void End() {
    if (agent_ != nullptr) agent_->Stop(plan_.spec.stop_grace_s);
    service_->Shutdown();
    std::error_code error;
    if (wrote_service_file_) fs::remove(ServiceFilePath(plan_.directory), error);
  }

  absl::StatusOr<v1::StudyDetails> FullStudy() const {
    v1::GetStudyRequest request;
    request.set_name(plan_.spec.name);
    return client_->Call<api::GetStudy>(request);
  }

  std::string LogPath() const { return (fs::path(plan_.directory) / "tuner.log").string(); }

  RunPlan plan_;
  Interrupts interrupts_;
  std::unique_ptr<Service> service_;  // outlives client and agent
  std::unique_ptr<Client> client_;
  std::unique_ptr<Agent> agent_;
  v1::Study study_;
  v1::StudyDetails before_;  // what an earlier run left
  ChangedLimits limits_;
  bool resumed_ = false;
  bool wrote_service_file_ = false;
};

}  // namespace

ExitCode Run(const RunArguments& arguments) {
  RaiseLimitOfOpenFiles();
  absl::StatusOr<RunPlan> plan = CheckRun(arguments);
  if (!plan.ok()) {
    return Fail("run", ExitCode::kBadInput, std::string(plan.status().message()));
  }
  IgnoreBrokenPipes();
  return Session(*std::move(plan)).Run();
}

}  // namespace espalier
