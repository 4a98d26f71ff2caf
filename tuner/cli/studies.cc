// Verbs that change a study of a running service, or wait for one: submit, watch, stop, resume, rm,
// cancel, pin.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/client.h"
#include "tuner/cli/display.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/plain_log.h"
#include "tuner/cli/service_options.h"
#include "tuner/cli/table.h"
#include "tuner/cli/text.h"
#include "tuner/cli/verb.h"
#include "tuner/core/core.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

struct StudyArguments {
  ServiceArguments service;
  std::string study;  // a name; with submit a file
  bool wait = false;
  bool quiet = false;
  v1::ResumeStudyRequest resume;
  std::int64_t max_trials = 0;
  double time_limit_s = 0;
  std::int64_t trial = 0;
  int slots = 0;
  bool pruned = false;
  std::string reason;
};

std::shared_ptr<StudyArguments> AddStudyArguments(CLI::App& app) {
  auto a = std::make_shared<StudyArguments>();
  app.add_option("study", a->study, "Name of the study")->required()->type_name("STUDY");
  a->service.AddTo(app);
  return a;
}

// Runs a verb that needs nothing but a connection.
ExitCode WithClient(const std::string& verb, const StudyArguments& arguments,
                    absl::StatusOr<ExitCode> (*action)(Client&, const StudyArguments&)) {
  const absl::StatusOr<ClientOptions> options = arguments.service.Resolve();
  if (!options.ok()) return Fail(verb, options.status());
  Client client(*options);
  const absl::StatusOr<ExitCode> code = action(client, arguments);
  return code.ok() ? *code : Fail(verb, code.status());
}

// Follows a study to its end; Ctrl-C leaves the study alone.
absl::StatusOr<ExitCode> Follow(Client& client, const std::string& name, bool quiet,
                                bool from_the_start) {
  const Interrupts interrupts;
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails before, Glance(client, name));
  const std::unique_ptr<StudyDisplay> display = MakeDisplay(quiet);
  if (!from_the_start) {
    display->Say(StatusLine(before));
    display->StartAfter(before);
  }
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, FollowStudy(client, name, *display, interrupts));
  display->Finish();
  if (study.state() == v1::STUDY_RUNNING) {
    std::printf("study %s goes on; watch it again with: tuner watch %s\n", name.c_str(),
                name.c_str());
    return ExitCode::kInterrupted;
  }
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, Glance(client, name));
  std::printf("%s", ResultText(details).c_str());
  return ExitCodeOf(study.state());
}

absl::StatusOr<ExitCode> Submit(Client& client, const StudyArguments& arguments) {
  absl::StatusOr<StudySpec> spec = ReadStudyFile(arguments.study);
  // A file that is not there is bad input; "not found" is for studies and trials.
  if (!spec.ok()) return absl::InvalidArgumentError(spec.status().message());
  ESPALIER_RETURN_IF_ERROR(Validate(*spec));
  if (const absl::Status found = CheckCommand(*spec); !found.ok()) {
    std::fprintf(stderr, "tuner submit: on this machine, %s; the agents' machines need it\n",
                 std::string(found.message()).c_str());
  }
  v1::CreateStudyRequest request;
  request.set_study_json(spec->json);
  request.set_directory(spec->directory);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, client.CreateStudy(request));
  std::printf("study %s submitted\n", study.name().c_str());
  if (!study.notice().empty()) {
    std::fprintf(stderr, "tuner submit: %s\n", study.notice().c_str());
  }
  std::fflush(stdout);
  return arguments.wait ? Follow(client, study.name(), arguments.quiet, true) : ExitCode::kOk;
}

absl::StatusOr<ExitCode> Watch(Client& client, const StudyArguments& arguments) {
  return Follow(client, arguments.study, false, false);
}

absl::StatusOr<ExitCode> Stop(Client& client, const StudyArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, client.StopStudy(arguments.study));
  std::printf("study %s is %s\n", study.name().c_str(), StateName(study.state()).c_str());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Remove(Client& client, const StudyArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, client.DeleteStudy(arguments.study));
  std::printf("study %s is deleted; it had %s\n", study.name().c_str(), TrialCounts(study).c_str());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Resume(Client& client, const StudyArguments& arguments) {
  if (arguments.max_trials < 0 || !(arguments.time_limit_s >= 0)) {
    return absl::InvalidArgumentError("--trials and --time-limit must be more than 0");
  }
  v1::ResumeStudyRequest request;
  request.set_name(arguments.study);
  request.set_max_trials(arguments.max_trials);
  request.set_time_limit_s(arguments.time_limit_s);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, client.ResumeStudy(request));
  std::printf("study %s is %s; %s\n", study.name().c_str(), StateName(study.state()).c_str(),
              TrialCounts(study).c_str());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Pin(Client& client, const StudyArguments& arguments) {
  if (arguments.slots < 0) {
    return absl::InvalidArgumentError(
        fmt::format("--slots {}: must be 0 (back to the allocator) or more", arguments.slots));
  }
  v1::PinTrialRequest request;
  request.set_study(arguments.study);
  request.set_trial_number(arguments.trial);
  request.set_slots(arguments.slots);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, client.PinTrial(request));
  if (trial.pinned_slots() == 0) {
    std::printf("trial %ld is the allocator's again\n", static_cast<long>(trial.number()));
  } else {
    std::printf("trial %ld is held at %s\n", static_cast<long>(trial.number()),
                Count(trial.pinned_slots(), "slot").c_str());
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Cancel(Client& client, const StudyArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, Glance(client, arguments.study));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial found, NamedTrial(details, arguments.trial));
  v1::CancelTrialRequest request;
  request.set_trial_id(found.id());
  request.set_state(arguments.pruned ? v1::TRIAL_PRUNED : v1::TRIAL_FAIL);
  request.set_reason(arguments.reason);
  ESPALIER_ASSIGN_OR_RETURN(const v1::TrialRecord trial, client.CancelTrial(request));
  std::printf("trial %ld is %s%s%s\n", static_cast<long>(trial.number()),
              StateName(trial.state()).c_str(), trial.reason().empty() ? "" : ": ",
              trial.reason().c_str());
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddSubmit(CLI::App& app) {
  auto a = std::make_shared<StudyArguments>();
  app.add_option("study", a->study, "Study file")->required()->type_name("STUDY.json");
  a->service.AddTo(app);
  app.add_flag("--wait", a->wait, "Follow the study until it ends; exits as `tuner run` does");
  app.add_flag("--quiet", a->quiet, "With --wait: print only the result");
  return [a] { return WithClient("submit", *a, Submit); };
}

VerbAction AddWatch(CLI::App& app) {
  auto a = AddStudyArguments(app);
  return [a] { return WithClient("watch", *a, Watch); };
}

VerbAction AddStop(CLI::App& app) {
  auto a = AddStudyArguments(app);
  return [a] { return WithClient("stop", *a, Stop); };
}

VerbAction AddRemove(CLI::App& app) {
  auto a = AddStudyArguments(app);
  return [a] { return WithClient("rm", *a, Remove); };
}

VerbAction AddResume(CLI::App& app) {
  auto a = AddStudyArguments(app);
  app.add_option("--trials", a->max_trials, "New limit on all trials (default: as it was)");
  app.add_option("--time-limit", a->time_limit_s,
                 "New limit on running time in seconds (default: as it was)");
  return [a] { return WithClient("resume", *a, Resume); };
}

VerbAction AddCancel(CLI::App& app) {
  auto a = AddStudyArguments(app);
  app.add_option("trial", a->trial, "Number of the trial")->required()->type_name("TRIAL");
  app.add_flag("--pruned", a->pruned, "It ends as PRUNED, with its last value (default: as FAIL)");
  app.add_option("--reason", a->reason, "Why, for the study's record");
  return [a] { return WithClient("cancel", *a, Cancel); };
}

VerbAction AddPin(CLI::App& app) {
  auto a = AddStudyArguments(app);
  app.add_option("trial", a->trial, "Number of the trial")->required()->type_name("TRIAL");
  app.add_option("--slots", a->slots, "Slots to hold; 0: back to the allocator")->required();
  return [a] { return WithClient("pin", *a, Pin); };
}

}  // namespace espalier
