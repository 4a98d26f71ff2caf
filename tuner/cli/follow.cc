#include "tuner/cli/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "tuner/cli/options/command.h"
#include "tuner/cli/pacer.h"
#include "tuner/cli/views/plain_log.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

// Asks a service that may be restarted meanwhile: while it is away, it is asked again.
class PatientClient {
 public:
  PatientClient(Client& client, StudyDisplay& display, const Interrupts& interrupts,
                double away_limit_s)
      : client_(client), display_(display), interrupts_(interrupts), away_limit_s_(away_limit_s) {
    client_.LeaveCutOffCalls();  // it says that the service is away, and can be interrupted
  }

  template <typename Question>
  auto Ask(const Question& question) -> decltype(question()) {
    auto answer = question();
    if (!absl::IsUnavailable(answer.status()) || away_limit_s_ <= 0) return answer;
    display_.Say(fmt::format("the service at {} is away; waiting for it", client_.address()));
    const Time deadline = After(Now(), away_limit_s_);
    while (absl::IsUnavailable(answer.status())) {
      if (interrupts_.interrupted() || Now() >= deadline) return answer;
      interrupts_.Wait(std::min(kAwayPoll_s, SecondsBetween(Now(), deadline)));
      answer = question();
    }
    display_.Say(fmt::format("the service at {} is back", client_.address()));
    return answer;
  }

 private:
  Client& client_;
  StudyDisplay& display_;
  const Interrupts& interrupts_;
  double away_limit_s_;
};

absl::StatusOr<v1::Study> FindStudy(Client& client, const std::string& name) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse list, client.Call<api::ListStudies>({}));
  for (const v1::Study& study : list.studies()) {
    if (study.name() == name) return study;
  }
  return absl::NotFoundError("no study \"" + name + "\"; `tuner ls` lists the studies");
}

bool HoldsSlots(const v1::StudyDetails& details) {
  for (const v1::Node& node : details.pool().nodes()) {
    for (const v1::SlotHolder& holder : node.holders()) {
      if (holder.study() == details.study().name()) return true;
    }
  }
  return false;
}

// Of a study with several directions: each trial of its front, with parameters.
std::string FrontText(const v1::StudyDetails& details) {
  const std::vector<const v1::Trial*> front = ParetoFront(details);
  if (front.empty()) return fmt::format("{}\n", WhyNoneIsBest(details, "no trial is complete"));
  std::string text = fmt::format("Pareto front of {}: {}\n", MetricNames(details.study()),
                                 Count(std::ssize(front), "trial"));
  for (const v1::Trial* trial : front) {
    text += fmt::format("  trial {}: {}: {}\n", trial->number(), ValuesText(*trial),
                        DisplayParameters(*trial));
  }
  return text;
}

}  // namespace

absl::StatusOr<v1::StudyDetails> Glance(Client& client, const std::string& name) {
  v1::GetStudyRequest request;
  request.set_name(name);
  request.set_without_values(true);
  return client.Call<api::GetStudy>(request);
}

absl::StatusOr<v1::StudyDetails> FollowStudy(Client& client, const std::string& name,
                                             StudyDisplay& display, const Interrupts& interrupts,
                                             double away_limit_s) {
  PatientClient patient(client, display, interrupts, away_limit_s);
  const auto glance = [&] { return Glance(client, name); };
  Pacer end_pace(kEndPoll_s);
  Pacer display_pace(kDisplayPoll_s);
  while (true) {
    Time before = Now();
    if (display_pace.Due(before)) {
      ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, patient.Ask(glance));
      display.Show(details);
      display_pace.Ran(before, Now());
    }
    before = Now();
    ESPALIER_ASSIGN_OR_RETURN(const v1::Study study,
                              patient.Ask([&] { return FindStudy(client, name); }));
    end_pace.Ran(before, Now());
    if (study.state() != v1::STUDY_RUNNING || interrupts.interrupted()) {
      ESPALIER_ASSIGN_OR_RETURN(v1::StudyDetails last, patient.Ask(glance));
      display.Show(last);
      if (last.study().state() != v1::STUDY_RUNNING || interrupts.interrupted()) return last;
    }
    const Time now = Now();
    interrupts.Wait(std::min(end_pace.SecondsLeft(now), display_pace.SecondsLeft(now)));
  }
}

void WatchOptions::AddTo(CliCommand& command) {
  service.AddTo(command);
  command
      .AddOption("--reconnect", away_limit_s,
                 "Seconds to wait for the service if it goes away meanwhile, as for a restart; 0: "
                 "do not wait")
      .NonNegative()
      .ShowDefault();
}

absl::StatusOr<ExitCode> WatchStudy(Client& client, const std::string& name,
                                    const WatchOptions& options) {
  const Interrupts interrupts;
  ESPALIER_ASSIGN_OR_RETURN(v1::StudyDetails before, Glance(client, name));
  const std::unique_ptr<StudyDisplay> display = MakeDisplay(options.quiet);
  if (!options.from_the_start) {
    display->Say(StatusLine(before));
    before.mutable_study()->clear_notice();  // it holds now, and so it is shown
    display->StartAfter(before);
  }
  // The service of a `tuner run` ends with it, and another one listens elsewhere.
  const bool of_a_run = !options.service.directory.empty();
  const double away_limit_s = of_a_run ? 0 : options.away_limit_s;
  const absl::StatusOr<v1::StudyDetails> last =
      FollowStudy(client, name, *display, interrupts, away_limit_s);
  display->Finish();
  const std::string again = fmt::format("tuner watch {}{}", name, options.service.words());
  const bool away = absl::IsUnavailable(last.status());
  if ((away && interrupts.interrupted()) ||
      (last.ok() && last->study().state() == v1::STUDY_RUNNING)) {
    std::printf("study %s goes on; watch it again with: %s\n", name.c_str(), again.c_str());
    return ExitCode::kInterrupted;
  }
  if (last.ok()) {
    std::printf("%s", ResultText(*last).c_str());
    return ExitCodeOf(last->study().state());
  }
  if (!away || of_a_run) return last.status();
  return absl::UnavailableError(fmt::format("{}; the study is not affected; go on with: {}",
                                            std::string(last.status().message()), again));
}

absl::Status AwaitSlotsFree(Client& client, const std::string& name, StudyDisplay& display,
                            const Interrupts& interrupts, double limit_s) {
  const Time deadline = After(Now(), limit_s);
  Pacer pace(kEndPoll_s);
  Pacer display_pace(kDisplayPoll_s);
  while (Now() < deadline) {
    const Time before = Now();
    ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, Glance(client, name));
    pace.Ran(before, Now());
    const bool done = !HoldsSlots(details);
    if (done || display_pace.Due(before)) {
      display.Show(details);
      display_pace.Ran(before, Now());
    }
    if (done) return absl::OkStatus();
    interrupts.Wait(pace.SecondsLeft(Now()));
  }
  return absl::DeadlineExceededError(
      fmt::format("trials still held slots after {}", FormatDuration(limit_s)));
}

std::string ResultText(const v1::StudyDetails& details) {
  const v1::Study& study = details.study();
  std::string text = fmt::format("study {} {} after {}", study.name(), StateName(study.state()),
                                 FormatDuration(study.elapsed_s()));
  if (!study.reason().empty()) text += ": " + study.reason();
  if (!study.notice().empty()) text += "\nnote: " + study.notice();
  text += "\n" + TrialCounts(study) + "\n";
  if (const std::string constraints = ConstraintsText(details); !constraints.empty()) {
    text += constraints + "\n";
  }
  if (study.directions_size() > 1) return text + FrontText(details);
  if (!study.has_best_trial()) {
    return fmt::format("{}{}\n", text, WhyNoneIsBest(details, "no trial has a value"));
  }
  text += fmt::format("best trial {}: {} {} {}\n", study.best_trial(), BestIs(study),
                      study.metric(), FormatExactly(study.best_value()));
  if (const v1::Trial* best = FindTrial(details, study.best_trial())) {
    for (const v1::Parameter& parameter : best->parameters()) {
      text += fmt::format("  {} = {}\n", parameter.name(), ExactParameter(parameter));
    }
    if (!best->checkpoint().empty()) text += "  checkpoint: " + best->checkpoint() + "\n";
  }
  return text;
}

ExitCode ExitCodeOf(v1::StudyState state) {
  if (state == v1::STUDY_COMPLETE) return ExitCode::kOk;
  return state == v1::STUDY_STOPPED ? ExitCode::kInterrupted : ExitCode::kFailed;
}

}  // namespace espalier
