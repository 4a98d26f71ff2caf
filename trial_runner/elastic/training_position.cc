#include "trial_runner/elastic/training_position.h"

#include <bit>
#include <limits>
#include <locale>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr std::string_view kVersion = "espalier-position-3";
// Without what was set of the batch since training began.
constexpr std::string_view kFormerVersion = "espalier-position-2";

// Doubles travel as their bits: NaN and infinities included, and nothing is rounded.
class Writer {
 public:
  Writer& operator<<(std::int64_t v) {
    absl::StrAppend(&text_, " ", v);
    return *this;
  }
  Writer& operator<<(double v) { return *this << std::bit_cast<std::int64_t>(v); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_{kVersion};
};

class Reader {
 public:
  explicit Reader(std::string_view text) : in_(std::string(text)) {
    in_.imbue(std::locale::classic());
    in_ >> version_;
    if (version_ != kVersion && version_ != kFormerVersion) in_.setstate(std::ios::failbit);
  }
  Reader& operator>>(std::int64_t& v) {
    in_ >> v;
    return *this;
  }
  Reader& operator>>(double& v) {
    std::int64_t bits = 0;
    *this >> bits;
    v = std::bit_cast<double>(bits);
    return *this;
  }
  bool ok() const { return !in_.fail(); }
  bool former() const { return version_ == kFormerVersion; }

 private:
  std::istringstream in_;
  std::string version_;
};

ModelPosition ReadModel(Reader& in) {
  ModelPosition model;
  std::int64_t groups = 0;
  in >> model.loss_scale >> model.good_steps >> model.skipped_steps >> groups;
  for (std::int64_t i = 0; i < groups && in.ok(); ++i) {
    NoiseAverages::State n;
    in >> n.sqr >> n.trace >> n.weight >> n.biased;
    model.noise.emplace_back(n);
  }
  return model;
}

}  // namespace

GradientNoise TrainingPosition::Noise(double samples) const {
  GradientNoise total{0, 0};
  bool any = false;
  for (const ModelPosition& model : models) {
    for (const NoiseAverages& averages : model.noise) {
      if (averages.empty()) continue;
      any = true;
      total.sqr += averages.Sqr();
      total.var += averages.Var(samples);
    }
  }
  return any ? total : GradientNoise{NoiseAverages().Sqr(), NoiseAverages().Var(samples)};
}

void TrainingPosition::AddEvaluation(const EvaluationKey& key, std::vector<double> result) {
  evaluation_results[key] = std::move(result);
  ++evaluations;
  while (evaluation_results.size() > kKeptEvaluations) {
    evaluation_results.erase(evaluation_results.begin());
  }
}

std::vector<double> TrainingPosition::PastEvaluation(const EvaluationKey& key,
                                                     std::size_t sums) const {
  std::vector<double> found(sums, std::numeric_limits<double>::quiet_NaN());
  for (const auto& [other, result] : evaluation_results) {  // oldest first
    if (other.call != key.call || result.size() != sums) continue;
    found = result;
    if (other.epoch == key.epoch) break;
  }
  return found;
}

std::int64_t TrainingPosition::FirstEvaluatedStep(std::int64_t of_epoch) const {
  for (const auto& [key, result] : evaluation_results) {  // oldest first
    if (key.epoch == of_epoch) return key.step;
  }
  return step;
}

std::string TrainingPosition::Encode() const {
  Writer out;
  out << step << epoch << cursor << evaluations << batch_size << atomic_batch_size << progress
      << skipped_steps << models_stepped << static_cast<std::int64_t>(models.size());
  for (const ModelPosition& model : models) {
    out << model.loss_scale << model.good_steps << model.skipped_steps
        << static_cast<std::int64_t>(model.noise.size());
    for (const NoiseAverages& averages : model.noise) {
      const NoiseAverages::State n = averages.state();
      out << n.sqr << n.trace << n.weight << n.biased;
    }
  }
  out << static_cast<std::int64_t>(evaluation_results.size());
  for (const auto& [key, values] : evaluation_results) {
    out << key.epoch << key.step << key.call << static_cast<std::int64_t>(values.size());
    for (const double v : values) out << v;
  }
  out << next_batch_size << loader_batch_size << left_out;
  return out.Take();
}

absl::StatusOr<TrainingPosition> TrainingPosition::Decode(std::string_view text) {
  Reader in(text);
  const auto most = static_cast<std::int64_t>(text.size());  // each value takes a character or more
  TrainingPosition p;
  std::int64_t count = 0;
  std::int64_t results = 0;
  in >> p.step >> p.epoch >> p.cursor >> p.evaluations >> p.batch_size >> p.atomic_batch_size >>
      p.progress >> p.skipped_steps >> p.models_stepped >> count;
  for (std::int64_t i = 0; i < count && in.ok(); ++i) p.models.push_back(ReadModel(in));
  in >> results;
  for (std::int64_t i = 0; i < results && in.ok(); ++i) {
    EvaluationKey key;
    in >> key.epoch >> key.step >> key.call >> count;
    if (!in.ok() || count < 0 || count > most) break;
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& v : values) in >> v;
    p.evaluation_results[key] = std::move(values);
  }
  if (!in.former()) in >> p.next_batch_size >> p.loader_batch_size >> p.left_out;
  if (!in.ok() || p.step < 0 || p.epoch < 0 || p.cursor < 0 ||
      static_cast<std::int64_t>(p.evaluation_results.size()) != results) {
    return absl::DataLossError("training position is damaged or of another version");
  }
  return p;
}

}  // namespace espalier
