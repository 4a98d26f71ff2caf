#include "tuner/cli/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "tuner/base/clock.h"
#include "tuner/cli/views/plain_log.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

// Runs something at most every `period_s`, and less often if it is expensive.
class Pacer {
 public:
  explicit Pacer(double period_s) : period_s_(period_s) {}

  bool Due(Time now) const { return now >= next_; }
  double SecondsLeft(Time now) const { return std::max(0.0, SecondsBetween(now, next_)); }
  void Ran(Time from, Time to) {
    next_ = After(to, std::max(period_s_, SecondsBetween(from, to) / kPollShare));
  }

 private:
  double period_s_;
  Time next_;
};

absl::StatusOr<v1::Study> FindStudy(Client& client, const std::string& name) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse list, client.ListStudies());
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

}  // namespace

absl::StatusOr<v1::StudyDetails> Glance(Client& client, const std::string& name) {
  v1::GetStudyRequest request;
  request.set_name(name);
  request.set_without_values(true);
  return client.GetStudy(request);
}

absl::StatusOr<v1::Study> FollowStudy(Client& client, const std::string& name,
                                      StudyDisplay& display, const Interrupts& interrupts) {
  Pacer end_pace(kEndPoll_s);
  Pacer display_pace(kDisplayPoll_s);
  while (true) {
    Time before = Now();
    if (display_pace.Due(before)) {
      ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, Glance(client, name));
      display.Show(details);
      display_pace.Ran(before, Now());
    }
    before = Now();
    ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, FindStudy(client, name));
    end_pace.Ran(before, Now());
    if (study.state() != v1::STUDY_RUNNING || interrupts.interrupted()) {
      ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails last, Glance(client, name));
      display.Show(last);
      return study;
    }
    const Time now = Now();
    interrupts.Wait(std::min(end_pace.SecondsLeft(now), display_pace.SecondsLeft(now)));
  }
}

absl::StatusOr<ExitCode> WatchStudy(Client& client, const std::string& name, bool quiet,
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
  if (!study.has_best_trial()) return text + "no trial has a value\n";
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
