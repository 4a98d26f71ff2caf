#pragma once

// What an elastic trial tells of how it trains. A figure is an enumerator and a row of kFigureRows,
// and the place that measures it: what carries, keeps and shows figures goes through the table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace espalier {

enum class Figure {
  kBatchSize,
  kLearningRate,
  kNoiseScale,
  kGoodput,
  kThroughput,
  kAtomicBatchSize,
  kAccumulationSteps,
  kStepTime,
  kSyncShare,
  kMemory,
  kDeviceMemory,
  kLossScale,
  kSkippedSteps,
  kGradientTransport,
  kGrowthStep,
};

// How gradients go between the GPUs of a trial: the values of Figure::kGradientTransport.
enum class GradientTransport {
  kNone,  // they need not: no GPU, or one replica
  kNccl,
  kHostUntilNccl,  // through host memory, until NCCL's communicator is formed
  kHost,           // through host memory
};
// In words; empty for kNone and for a value of another release.
std::string_view TextOf(GradientTransport transport);

// How a person is shown a figure.
enum class ShownAs {
  kNumber,
  kBytes,
  kSamplesAStep,  // of one replica, with the passes that a step has
  kStepTime,      // with the share of it that is waiting
  kLongerStep,    // by how much a group's first step was longer
  kTransport,     // in the words of a GradientTransport
  kNothing,       // another figure's line has it
};

struct FigureRow {
  Figure figure;
  // In messages, in the database and in JSON. Never changed: a former release wrote it.
  std::string_view name;
  std::string_view help;     // one line, with the unit where the name does not have it
  std::string_view label{};  // of its line in `tuner show`
  ShownAs shown = ShownAs::kNumber;
  std::string_view metric = name;  // its gauge is espalier_trial_METRIC
};

// In the order of the enumerators, which is the one in which people are shown them.
inline constexpr FigureRow kFigureRows[] = {
    {.figure = Figure::kBatchSize,
     .name = "batch_size",
     .help = "Global batch size",
     .label = "batch size"},
    {.figure = Figure::kLearningRate,
     .name = "learning_rate",
     .help = "Learning rate",
     .label = "learning rate"},
    {.figure = Figure::kNoiseScale,
     .name = "noise_scale",
     .help = "Gradient noise scale in samples",
     .label = "noise scale"},
    {.figure = Figure::kGoodput,
     .name = "goodput",
     .help = "Samples a second that count",
     .label = "goodput"},
    {.figure = Figure::kThroughput,
     .name = "throughput",
     .help = "Samples a second",
     .label = "throughput"},
    {.figure = Figure::kAtomicBatchSize,
     .name = "atomic_batch_size",
     .help = "Samples of one forward pass on one replica",
     .label = "per replica",
     .shown = ShownAs::kSamplesAStep},
    {.figure = Figure::kAccumulationSteps,
     .name = "accumulation_steps",
     .help = "Forward passes of a step before its last one",
     .shown = ShownAs::kNothing},
    {.figure = Figure::kStepTime,
     .name = "step_time_s",
     .help = "Mean time of an optimizer step",
     .label = "step time",
     .shown = ShownAs::kStepTime,
     .metric = "step_seconds"},
    {.figure = Figure::kSyncShare,
     .name = "sync_share",
     .help = "Share of the step time spent waiting for the all-reduce",
     .shown = ShownAs::kNothing},
    {.figure = Figure::kMemory,
     .name = "memory_bytes",
     .help = "Resident memory of rank 0",
     .label = "memory",
     .shown = ShownAs::kBytes},
    {.figure = Figure::kDeviceMemory,
     .name = "device_memory_bytes",
     .help = "Memory of rank 0 on its accelerator",
     .label = "device memory",
     .shown = ShownAs::kBytes},
    {.figure = Figure::kLossScale,
     .name = "loss_scale",
     .help = "Loss scale of mixed precision",
     .label = "loss scale"},
    {.figure = Figure::kSkippedSteps,
     .name = "skipped_steps",
     .help = "Steps so far whose gradients were not finite",
     .label = "skipped steps"},
    {.figure = Figure::kGradientTransport,
     .name = "gradient_transport",
     .help = "How gradients go between GPUs: 1 by NCCL, 2 through host memory until NCCL's "
             "communicator is formed, 3 through host memory",
     .label = "gradients go",
     .shown = ShownAs::kTransport},
    {.figure = Figure::kGrowthStep,
     .name = "growth_step_s",
     .help = "By how much the first step after the latest growth took longer than the second one",
     .label = "last growth",
     .shown = ShownAs::kLongerStep,
     .metric = "growth_step_seconds"},
};

constexpr std::size_t IndexOf(Figure figure) { return static_cast<std::size_t>(figure); }

constexpr bool FigureRowsAreInOrder() {
  for (std::size_t i = 0; i < std::size(kFigureRows); ++i) {
    if (IndexOf(kFigureRows[i].figure) != i) return false;
  }
  return true;
}
static_assert(FigureRowsAreInOrder());

// The row of that name; nullptr: this build knows no such figure.
const FigureRow* FindFigure(std::string_view name);

// What a trial last told. Zero: unknown, or there is none.
class TrainingFigures {
 public:
  double operator[](Figure figure) const { return values_[IndexOf(figure)]; }
  double& operator[](Figure figure) { return values_[IndexOf(figure)]; }

  // As a whole number: without its fraction, and 0 where it is none. Up to 2^53 a figure holds it
  // exactly; what is further from 0 becomes that.
  std::int64_t Whole(Figure figure) const;

  friend bool operator==(const TrainingFigures&, const TrainingFigures&) = default;

 private:
  std::array<double, std::size(kFigureRows)> values_{};
};

}  // namespace espalier
