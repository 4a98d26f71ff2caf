#include "trial_runner/python/interface.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "trial_runner/python/parcel.h"
#include "trial_runner/python/python_parts.h"
#include "trial_runner/python/session.h"
#include "trial_runner/torch/trial.h"

namespace espalier::python {
namespace {

enum FailureKind { kNone, kUsage, kTrialError, kCallback, kOther };

struct Failure {
  int kind = kNone;
  std::string message;
};
thread_local Failure failure;  // NOLINT: the interface's own, as errno is

// Runs `call`, and makes a failure of what it throws.
template <typename Call>
std::int64_t Guarded(const Call& call) {
  try {
    failure = {};
    return call();
  } catch (const ProgramError& e) {
    failure = {e.exit_code() == kBadUseExitCode ? kUsage : kTrialError, e.what()};
  } catch (const CallbackError& e) {
    failure = {kCallback, e.what()};
  } catch (const std::exception& e) {
    failure = {kOther, e.what()};
  }
  return -1;
}

template <typename Call>
int Done(const Call& call) {
  return static_cast<int>(Guarded([&]() -> std::int64_t {
    call();
    return 0;
  }));
}

Session& The() { return Session::The(); }

TrainingEngine& Engine() { return The().engine(); }

EvaluationKey KeyOf(const EspalierEvaluation& e) {
  return {.epoch = e.epoch, .step = e.step, .call = e.call};
}

}  // namespace
}  // namespace espalier::python

using espalier::python::Done;
using espalier::python::Engine;
using espalier::python::Guarded;
using espalier::python::The;

extern "C" {

const char* esp_error(int* kind) {
  *kind = espalier::python::failure.kind;
  return espalier::python::failure.message.c_str();
}

const char* esp_torch_version() { return ESPALIER_TORCH_VERSION; }
const char* esp_version() { return ESPALIER_VERSION; }

int esp_open(int argc, const char* const* argv, const EspalierCallbacks* callbacks) {
  return Done([&] { The().Open(argc, argv, *callbacks); });
}

int esp_trial(EspalierTrial* trial) {
  return Done([&] {
    const espalier::TrialContext& context = The().context();
    *trial = {.number = context.trial_number,
              .seed = context.seed,
              .device = context.device.is_cpu() ? -1 : context.device.index(),
              .agent = std::getenv("ESPALIER_CONTROL_FD") != nullptr ? 1 : 0,
              .adaptive_batch = context.adaptive_batch ? 1 : 0,
              .threads = context.threads,
              .joins = context.joins};
  });
}

const char* esp_parameters() {
  static std::string json;
  json = The().context().parameters.Json();
  return json.c_str();
}

void esp_ask(const char* name) { The().context().parameters.Ask(name); }

int esp_report(int64_t step, double value, const char* const* names, const double* values,
               int64_t count) {
  return Done([&] {
    std::map<std::string, double> extra;
    for (int64_t i = 0; i < count; ++i) extra[names[i]] = values[i];
    The().trial().Report(step, value, extra);
  });
}

int esp_add_state(const char* name) {
  return Done([&] { The().AddState(name); });
}

int esp_finish(const double* value) {
  return Done([&] {
    The().trial().SayFinished(value != nullptr ? std::optional(*value) : std::nullopt, "");
  });
}

int esp_fail(const char* reason) {
  return Done([&] { The().trial().SayFinished(std::nullopt, reason); });
}

int64_t esp_add_model(const EspalierModelOptions* options) {
  return Guarded([&] { return The().AddModel(*options); });
}

int esp_set_data(const EspalierData* data) {
  return Done([&] {
    espalier::DataLoaderOptions options;
    options.batch_size = data->batch_size;
    options.max_batch_size = data->max_batch_size;
    options.min_atomic_batch_size = data->min_atomic_batch_size;
    options.max_atomic_batch_size = data->max_atomic_batch_size;
    options.accumulation = data->accumulation != 0;
    Engine().SetData(data->size, options);
  });
}

int esp_set_batch_size(int64_t batch_size) {
  return Done([&] { Engine().SetBatchSize(batch_size); });
}

int esp_rehearse() {
  return Done([&] {
    Engine().RehearsePasses([] {
      espalier::python::Exchange::The().Ask(
          {}, [](const EspalierCallbacks& python) { return python.rehearse(); });
    });
  });
}

int esp_not_rehearsed(const char* why) {
  return Done([&] { Engine().NotRehearsed(why); });
}

int64_t esp_rehearsed_samples() {
  return Guarded([] { return Engine().RehearsedSamples(); });
}

int esp_next_epoch(int64_t epochs) {
  return static_cast<int>(Guarded([&] {
    Engine().EndMicrobatch();
    return Engine().NextEpoch(epochs) ? 1 : 0;
  }));
}

int esp_next_microbatch(EspalierMicrobatch* microbatch) {
  return static_cast<int>(Guarded([&] {
    Engine().EndMicrobatch();
    const auto slice = Engine().NextMicrobatch();
    if (!slice) return 0;
    *microbatch = {Engine().epoch() - 1, slice->begin, slice->size,
                   Engine().InLastMicrobatch() ? 1 : 0};
    return 1;
  }));
}

int esp_samples(int64_t size, int64_t epoch, int64_t begin, int64_t count, int64_t* samples) {
  return Done([&] { Engine().CopySamples(size, epoch, {begin, count}, samples); });
}

int64_t esp_forecast(EspalierMicrobatch* microbatches, int64_t count) {
  return Guarded([&] {
    espalier::MicrobatchForecast forecast = Engine().Forecast();
    int64_t found = 0;
    for (; found < count; ++found) {
      const auto next = forecast.Next();
      if (!next) break;
      microbatches[found] = {next->epoch, next->slice.begin, next->slice.size, 0};
    }
    return found;
  });
}

int esp_begin_microbatch() {
  return Done([&] {
    Engine().BeginMicrobatch();
    Engine().OpenPasses();
  });
}

int esp_end_backwards() {
  return Done([] { Engine().EndBackwards(); });
}

int esp_defers_hooks(int64_t model) {
  return static_cast<int>(
      Guarded([&] { return Engine().DefersHooks(static_cast<std::size_t>(model)) ? 1 : 0; }));
}

int esp_hold_gradients(int on) {
  return Done([&] { Engine().HoldGradients(on != 0); });
}

int esp_zero_gradients(int64_t model, const int64_t* parameters, int64_t count) {
  return Done([&] {
    Engine().ZeroGradients(static_cast<std::size_t>(model), {parameters, parameters + count});
  });
}

int esp_step(int64_t model, const double* rates, int64_t groups, double loss_scale) {
  return static_cast<int>(Guarded([&] {
    The().SetRates(model, std::vector<double>(rates, rates + groups));
    return static_cast<int>(Engine().StepModel(static_cast<std::size_t>(model), loss_scale));
  }));
}

int esp_pass_over(int64_t model) {
  return static_cast<int>(Guarded(
      [&] { return static_cast<int>(Engine().PassOverModel(static_cast<std::size_t>(model))); }));
}

int esp_leave_out_microbatch() {
  return Done([] { Engine().LeaveOutMicrobatch(); });
}

int esp_end_microbatch() {
  return Done([&] { Engine().EndMicrobatch(); });
}

int esp_begin_evaluation(EspalierEvaluation* evaluation) {
  return Done([&] {
    Engine().EndMicrobatch();
    const espalier::EvaluationKey key = Engine().BeginEvaluation();
    evaluation->epoch = key.epoch;
    evaluation->step = key.step;
    evaluation->call = key.call;
    evaluation->state = static_cast<int64_t>(Engine().StateOf(key));
  });
}

int esp_share_buffers(EspalierEvaluation* evaluation, int ends) {
  return static_cast<int>(Guarded([&] {
    const espalier::EvaluationKey key = espalier::python::KeyOf(*evaluation);
    const bool shared = Engine().ShareBuffers(key, ends != 0);
    evaluation->state = static_cast<int64_t>(Engine().StateOf(key));
    return shared ? 1 : 0;
  }));
}

int esp_end_evaluation(EspalierEvaluation* evaluation) {
  return static_cast<int>(Guarded([&] {
    const espalier::EvaluationKey key = espalier::python::KeyOf(*evaluation);
    const bool merged = Engine().MergeEvaluation(key, evaluation->accumulator);
    evaluation->state = static_cast<int64_t>(Engine().StateOf(key));
    return merged ? 1 : 0;
  }));
}

int esp_abandoned() {
  return static_cast<int>(Guarded([&] { return Engine().group().Abandoned() ? 1 : 0; }));
}

int esp_position(EspalierPosition* position) {
  return Done([&] {
    *position = {};
    position->epoch = -1;
    position->replicas = position->nodes = 1;
    position->factor = position->gain = 1;
    if (The().has_engine()) The().Fill(*position);
  });
}

int64_t esp_take_seed() {
  if (!The().has_engine()) return 0;
  const std::optional<std::uint64_t> seed = Engine().TakeSeedOfAll();
  return seed && Engine().group().whole_size() > 1 ? static_cast<int64_t>(*seed >> 1 | 1) : 0;
}

int64_t esp_steps() { return The().has_engine() ? Engine().position().step : 0; }

int esp_noise(int64_t model, double* sqr, double* var, int64_t groups) {
  return Done([&] { The().Noise(model, {sqr, var, groups}); });
}

int64_t esp_incoming_count() {
  return std::ssize(espalier::python::Exchange::The().incoming.texts);
}

const void* esp_incoming(int64_t index, int64_t* size) {
  const std::string& text =
      espalier::python::Exchange::The().incoming.texts.at(static_cast<std::size_t>(index));
  *size = std::ssize(text);
  return text.data();
}

void esp_give(const void* bytes, int64_t size) {
  espalier::python::Exchange::The().given.texts.emplace_back(static_cast<const char*>(bytes),
                                                             static_cast<std::size_t>(size));
}

}  // extern "C"
