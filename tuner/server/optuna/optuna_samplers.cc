#include "tuner/server/optuna/optuna_samplers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/guarded.h"
#include "spdlog/spdlog.h"
#include "tuner/core/trials/draws.h"
#include "tuner/core/trials/searched_space.h"
#include "tuner/server/optuna/confined_program.h"
#include "tuner/server/optuna/outside_messages.h"
#include "tuner/server/optuna/suggest_script.h"

namespace espalier {

namespace {

constexpr std::size_t kMostProcesses = 64;
constexpr int kTries = 3;
constexpr double kFirstWait_s = 0.5;  // before it is started again; then four times as long
// Clients that create a study wait for what its sampler says: not long where it sleeps, or works on
// and on, and longer where the machine has no time for it.
constexpr double kCheckIdle_s = 5;
constexpr double kCheckProcessor_s = 5;
constexpr std::chrono::seconds kCheckFor{30};
constexpr std::ptrdiff_t kMostChecks = 4;  // at a time
constexpr double kStart_s = 120;           // Python, Optuna and the hub's package
// A suggestion that has so little of the processor, or sleeps, is given up.
constexpr double kSecondsForOne = 4;
constexpr double kGrace_s = 10;

// The script follows on the standard input, so that lists of processes stay readable.
constexpr const char* kReadScript =
    "import sys; exec(compile(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())), "
    "'suggest.py', 'exec'))";

// The service's own has tokens and places of credentials. One thread makes suggestions the same.
std::vector<std::string> EnvironmentOfOptuna() {
  return absl::StrSplit(
      "PATH=/usr/bin:/bin HOME=/nonexistent LANG=C.UTF-8 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 "
      "OPENBLAS_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=",
      ' ');
}

void WaitUnlessStopped(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

std::string NameOfSampler(const OutsideSampler& sampler) {
  if (sampler.package.empty()) return sampler.name.empty() ? "TPESampler" : sampler.name;
  return sampler.package;
}

// What Optuna or its sampler says names the sampler by itself.
std::string WhyNone(const DrawRequest& request, const absl::Status& status) {
  const std::string message(status.message());
  if (absl::IsFailedPrecondition(status)) return absl::StrCat("sampler optuna: ", message);
  const std::string tries =
      absl::IsAborted(status) ? absl::StrCat(" was tried ", kTries, " times") : "";
  return absl::StrCat("sampler optuna: ", NameOfSampler(*request.sampler->outside()), tries, ": ",
                      message);
}

// A process that takes requests of this one's study. `limit_s` as in Exchange.
absl::StatusOr<std::unique_ptr<ConfinedProgram>> StartOptuna(const OptunaOptions& options,
                                                             const DrawRequest& request,
                                                             double limit_s,
                                                             const std::stop_token& stop) {
  ESPALIER_ASSIGN_OR_RETURN(
      std::unique_ptr<ConfinedProgram> program,
      ConfinedProgram::Start(
          std::vector<std::string>{options.python, "-I", "-B", "-c", kReadScript},
          EnvironmentOfOptuna()));
  const std::string script(kSuggestScript);
  ESPALIER_ASSIGN_OR_RETURN(
      const std::string confined,
      program->Exchange(absl::StrCat(script.size(), "\n", script, ConfiningMessage(options)),
                        limit_s, stop));
  ESPALIER_RETURN_IF_ERROR(RefusalIn(confined));
  if (!FilesAreConfined(confined)) {
    spdlog::warn(
        "event=optuna_reads_files study=\"{}\" why=\"this kernel has no Landlock: the sampler's "
        "process can read what the service's user can\"",
        request.study_name);
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string taken,
                            program->Exchange(StudyMessage(request), limit_s, stop));
  ESPALIER_RETURN_IF_ERROR(RefusalIn(taken));
  return program;
}

// FailedPrecondition: the sampler refuses the study. Other errors say why nobody can tell.
absl::Status AskWhether(const OptunaOptions& options, const DrawRequest& request, bool constrained,
                        const std::stop_token& stop) {
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<ConfinedProgram> program,
                            StartOptuna(options, request, kCheckIdle_s, stop));
  const double processor_s = std::min(options.processor_s, kCheckProcessor_s);
  ESPALIER_ASSIGN_OR_RETURN(
      const std::string answer,
      program->Exchange(CheckMessage(request, processor_s, constrained), kCheckIdle_s, stop));
  return RefusalIn(answer);
}

}  // namespace

// The process of one study. Used by one thread, which starts and ends it.
class OptunaProcess {
 public:
  explicit OptunaProcess(const OptunaOptions& options) : options_(options) {}

  absl::StatusOr<Drawn> Suggest(const DrawRequest& request, const std::stop_token& stop) {
    absl::StatusOr<Drawn> drawn = absl::UnknownError("");
    double wait_s = kFirstWait_s;
    for (int tries = 1; tries <= kTries; ++tries, wait_s *= 4) {
      drawn = Try(request, stop);
      if (drawn.ok()) return drawn;
      running_.reset();
      if (!absl::IsAborted(drawn.status())) break;
      spdlog::warn("event=optuna_process_ended study=\"{}\" trial={} try={} why=\"{}\"",
                   request.study_name, request.trial_number, tries,
                   std::string(drawn.status().message()));
      if (tries < kTries) WaitUnlessStopped(wait_s, stop);
    }
    return absl::Status(drawn.status().code(), WhyNone(request, drawn.status()));
  }

 private:
  struct Running {
    std::unique_ptr<ConfinedProgram> program;
    ToldHistory told{};
  };

  absl::StatusOr<Drawn> Try(const DrawRequest& request, const std::stop_token& stop) {
    if (!running_) ESPALIER_RETURN_IF_ERROR(Start(request, stop));
    const std::string message = running_->told.MessageOf(request, options_.processor_s);
    ESPALIER_ASSIGN_OR_RETURN(const std::string answer,
                              running_->program->Exchange(
                                  message, kSecondsForOne * options_.processor_s + kGrace_s, stop));
    return ReadSuggestion(request, answer);
  }

  absl::Status Start(const DrawRequest& request, const std::stop_token& stop) {
    ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<ConfinedProgram> program,
                              StartOptuna(options_, request, kStart_s, stop));
    running_.emplace(Running{std::move(program)});
    return absl::OkStatus();
  }

  const OptunaOptions& options_;
  std::optional<Running> running_;
};

// Who waits for a suggestion is told one way or another, also where it is not made any more.
class OneAnswer {
 public:
  explicit OneAnswer(OutsideAnswer tell) : tell_(std::move(tell)) {}
  ~OneAnswer() { Give(absl::CancelledError("its study does not run")); }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  void Give(absl::StatusOr<Drawn> drawn) {
    if (const OutsideAnswer tell = std::exchange(tell_, nullptr)) tell(std::move(drawn));
  }

 private:
  OutsideAnswer tell_;
};

struct OptunaSamplers::OfStudy {
  explicit OfStudy(const OptunaOptions& options) : process(options) {}

  OptunaProcess process;
  // Last: it ends before the process does, which may ask to be killed with it.
  AsideThread thread{
      [](const std::string& what) { spdlog::error("event=optuna_failed why=\"{}\"", what); }};
};

OptunaSamplers::OptunaSamplers(OptunaOptions options)
    : options_(std::move(options)), checks_(kMostChecks), ending_([](const std::string& what) {
        spdlog::error("event=optuna_failed why=\"{}\"", what);
      }) {}

OptunaSamplers::~OptunaSamplers() { Stop(); }

absl::StatusOr<std::string> OptunaSamplers::Check(const StudySpec& spec) {
  ESPALIER_ASSIGN_OR_RETURN(std::shared_ptr<const Sampler> sampler,
                            MakeSampler(spec.sampler.name, spec.sampler.options));
  if (sampler->outside() == nullptr) return "";
  DrawRequest request;
  request.study_name = spec.name;
  request.sampler = std::move(sampler);
  request.space = SearchedSpace(spec);
  request.direction = spec.direction();
  const auto others = spec.other_directions();
  request.other_directions.assign(others.begin(), others.end());
  request.seed = DrawSeed(spec, 0);
  request.study_seed = spec.seed;
  const absl::Cleanup gone = [this] { --checked_; };
  if (++checked_ > kMostChecked) {
    return absl::ResourceExhaustedError(
        absl::StrCat("busy: the samplers of ", kMostChecked,
                     " new studies are being checked, the most that may; try again"));
  }
  const auto until = std::chrono::steady_clock::now() + kCheckFor;
  if (!checks_.try_acquire_until(until)) {
    return absl::StrCat("as many studies as may be are checked, ", kMostChecks);
  }
  const absl::Cleanup release = [this] { checks_.release(); };
  absl::Status said = absl::CancelledError();  // unless it is asked and answers
  std::promise<void> answered;
  std::future<void> answer = answered.get_future();
  {
    const auto name = [&spec] { return absl::StrCat("check of study \"", spec.name, "\""); };
    AsideThread asking(
        [](const std::string& what) { spdlog::error("event=optuna_failed why=\"{}\"", what); });
    asking.Do({name, [&](const std::stop_token& stop) {
                 const bool constrained = !spec.constraints.empty();
                 const absl::Status done = Guarded(
                     name, [&] { said = AskWhether(options_, request, constrained, stop); });
                 if (!done.ok()) said = done;
                 answered.set_value();
               }});
    if (answer.wait_until(until) == std::future_status::timeout) asking.Stop();
  }
  if (absl::IsFailedPrecondition(said)) {
    return absl::InvalidArgumentError(absl::StrCat("\"sampler\": ", std::string(said.message())));
  }
  if (said.ok()) return "";
  if (!absl::IsCancelled(said)) return std::string(said.message());
  return absl::StrCat("it has not answered within ", kCheckFor.count(), " s");
}

void OptunaSamplers::Ask(std::shared_ptr<const DrawRequest> request, OutsideAnswer answer) {
  std::shared_ptr<OfStudy>& own = studies_[request->study];
  if (!own && studies_.size() > kMostProcesses) {
    studies_.erase(request->study);
    answer(absl::ResourceExhaustedError(
        absl::StrCat(kMostProcesses,
                     " studies have samplers of Optuna's already, the most that "
                     "may: resume it when one of them has ended")));
    return;
  }
  if (!own) own = std::make_shared<OfStudy>(options_);
  const auto name = [request] {
    return absl::StrCat("draw of trial ", request->trial_number, " of study \"",
                        request->study_name, "\" by Optuna");
  };
  auto one = std::make_shared<OneAnswer>(std::move(answer));
  own->thread.Do({name, [process = &own->process, request, one, name](const std::stop_token& stop) {
                    absl::StatusOr<Drawn> drawn = absl::InternalError("");
                    const absl::Status done =
                        Guarded(name, [&] { drawn = process->Suggest(*request, stop); });
                    one->Give(done.ok() ? std::move(drawn) : done);
                  }});
}

void OptunaSamplers::Take(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const auto* changed = std::get_if<StudyStateChanged>(&change);
    const auto* deleted = std::get_if<StudyDeleted>(&change);
    if (deleted == nullptr && (changed == nullptr || changed->state == StudyState::kRunning)) {
      continue;
    }
    auto own = studies_.extract(deleted != nullptr ? deleted->id : changed->id);
    if (own.empty()) continue;
    auto ended = std::make_shared<std::shared_ptr<OfStudy>>(std::move(own.mapped()));
    ending_.Do({[] { return std::string("end of a process of Optuna's"); },
                [ended](const std::stop_token&) { ended->reset(); }});
  }
}

void OptunaSamplers::Stop() {
  studies_.clear();
  ending_.Stop();
}

}  // namespace espalier
