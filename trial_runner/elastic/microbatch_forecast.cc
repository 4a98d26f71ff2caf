#include "trial_runner/elastic/microbatch_forecast.h"

namespace espalier {

MicrobatchForecast::MicrobatchForecast(const MicrobatchStart& start) : at_(start) {
  const std::size_t microbatch = start.microbatch;
  if (at_.cursor < at_.epoch_size && at_.epoch < at_.epochs) PlanFrom(at_.cursor);
  at_.microbatch = microbatch;
}

std::optional<Microbatch> MicrobatchForecast::Next() {
  while (at_.epoch < at_.epochs) {
    if (at_.microbatch < plan_.microbatches.size()) {
      return Microbatch{at_.epoch, plan_.microbatches[at_.microbatch++]};
    }
    const std::int64_t cursor = at_.cursor + plan_.samples;
    if (cursor < at_.epoch_size) {
      PlanFrom(cursor);
    } else if (++at_.epoch < at_.epochs) {
      PlanFrom(0);
    }
  }
  return std::nullopt;
}

void MicrobatchForecast::PlanFrom(std::int64_t cursor) {
  at_.cursor = cursor;
  at_.microbatch = 0;
  plan_ = PlanStep(cursor, at_.epoch_size, at_.batch_size, at_.rank, at_.replicas, at_.max_atomic,
                   at_.aligned);
}

}  // namespace espalier
