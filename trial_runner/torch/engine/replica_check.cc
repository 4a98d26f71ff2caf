#include "trial_runner/torch/engine/replica_check.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <torch/version.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "trial_runner/kernels/bit_hash.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {
namespace {

// A number is told digit by digit, each with its square: all members have the same where the mean
// of the squares is the square of the mean. Sums of floats are exact below 2^24, so for 4,096
// members.
constexpr int kDigitBits = 6;
constexpr std::int64_t kLeastWords = 1024;
constexpr std::int64_t kWordBytes = 4;

// Of a digit (power 0), or of its square (1).
GradientBuckets::Tail PlaceOf(GradientBuckets::Tail first, int digit, int power) {
  return static_cast<GradientBuckets::Tail>(first + std::int64_t{2} * digit + power);
}

void Tell(GradientBuckets& gradients, GradientBuckets::Tail first, int digits, std::uint64_t of) {
  for (int i = 0; i < digits; ++i) {
    const auto digit = static_cast<double>(of >> (i * kDigitBits) & ((1U << kDigitBits) - 1));
    gradients.SetTail(PlaceOf(first, i, 0), digit);
    gradients.SetTail(PlaceOf(first, i, 1), digit * digit);
  }
}

bool AllSame(const GradientBuckets& gradients, GradientBuckets::Tail first, int digits,
             int members) {
  for (int i = 0; i < digits; ++i) {
    const double sum = gradients.tail(PlaceOf(first, i, 0));
    if (members * gradients.tail(PlaceOf(first, i, 1)) != sum * sum) return false;
  }
  return true;
}

std::uint64_t OfText(std::string_view text) {
  return HashBits(text.data(), text.size()) + text.size();
}

// The tensor's memory, in the order in which it lies there.
at::Tensor FlatOf(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  if (plain.is_non_overlapping_and_dense()) return plain.as_strided({plain.numel()}, {1});
  return plain.contiguous().reshape(-1);
}

// On a device, where the result stays until it is asked for.
at::Tensor HashOnDevice(const at::Tensor& flat, std::int64_t begin, std::int64_t end) {
  const bool whole_words = static_cast<std::int64_t>(flat.nbytes()) % kWordBytes == 0 &&
                           flat.storage_offset() * flat.element_size() % kWordBytes == 0;
  at::Tensor words = flat.is_complex() ? at::view_as_real(flat).reshape(-1) : flat;
  if (words.scalar_type() == at::kBool) words = words.to(at::kByte);
  const std::int64_t per_word = whole_words ? 1 : kWordBytes;
  words = words.view(whole_words ? at::kInt : at::kByte);
  const std::int64_t last = std::min(end * per_word, words.numel());
  words = words.slice(0, begin * per_word, last).to(at::kLong);
  const at::Tensor odd = at::arange(begin * per_word, last, words.options())
                             .mul(2)
                             .add(1)
                             .mul(static_cast<std::int64_t>(kPlaceFactor))
                             .bitwise_and(std::int64_t{0xFFFFFFFF});
  return words.mul(odd).sum();
}

}  // namespace

ReplicaCheck::Mode ReplicaCheck::ModeOfEnvironment() {
  const char* const given = std::getenv("ESPALIER_CHECK_REPLICAS");
  const std::string_view says = given == nullptr ? "" : given;
  if (says.empty() || says == "on") return Mode::kBits;
  if (says == "norms") return Mode::kNorms;
  if (says == "off") return Mode::kOff;
  BadUse(absl::StrCat("ESPALIER_CHECK_REPLICAS=", std::string(says),
                      ": want on (the default), norms or off"));
}

void ReplicaCheck::StartGroup() {
  stale_ = all_due_ = true;
  unlike_ = false;
  for (Part& part : parts_) part.agreed_after = -1;
}

std::int64_t ReplicaCheck::Rounds() const {
  return std::clamp<std::int64_t>(words_ / kLeastWords, 1, kRounds);
}

void ReplicaCheck::Refresh() {
  stale_ = false;
  std::vector<std::int64_t> agreed;
  for (const Part& part : parts_) agreed.push_back(part.agreed_after);
  parts_.clear();
  words_ = 0;
  numbers_ = 0;
  const auto add = [this](const at::Tensor& tensor) {
    Part part{.flat = FlatOf(tensor)};
    part.begin = words_;
    part.words = (static_cast<std::int64_t>(part.flat.nbytes()) + kWordBytes - 1) / kWordBytes;
    words_ += part.words;
    parts_.push_back(std::move(part));
  };
  for (const auto& model : models_) {
    for (const NamedTensor& parameter : model->model().Parameters()) add(parameter.tensor);
    const OptimizerPart::Compared compared = model->optimizer().WhatToCompare();
    for (const at::Tensor& tensor : compared.tensors) add(tensor);
    numbers_ = MixSeed(numbers_, OfText(compared.numbers));
  }
  if (agreed.size() != parts_.size()) return;
  for (std::size_t i = 0; i < agreed.size(); ++i) parts_[i].agreed_after = agreed[i];
}

std::uint64_t ReplicaCheck::OfWords(std::int64_t begin, std::int64_t end) const {
  const at::NoGradGuard no_grad;
  std::uint64_t sum = 0;
  std::vector<at::Tensor> on_device;
  auto part =
      std::upper_bound(parts_.begin(), parts_.end(), begin,
                       [](std::int64_t at, const Part& p) { return at < p.begin + p.words; });
  for (; part != parts_.end() && part->begin < end; ++part) {
    const std::int64_t from = std::max(begin - part->begin, std::int64_t{0});
    const std::int64_t to = std::min(end - part->begin, part->words);
    if (from >= to) continue;
    if (!part->flat.is_cpu()) {
      on_device.push_back(HashOnDevice(part->flat, from, to));
      continue;
    }
    const auto bytes = static_cast<std::int64_t>(part->flat.nbytes());
    const auto* start = static_cast<const std::uint8_t*>(part->flat.const_data_ptr());
    // Each tensor's by itself, since what they are summed to would otherwise depend on the order.
    sum = MixSeed(sum, HashBits(start + from * kWordBytes,
                                static_cast<std::size_t>(std::min(to * kWordBytes, bytes) -
                                                         from * kWordBytes),
                                static_cast<std::uint64_t>(from)));
  }
  if (on_device.empty()) return sum;
  const at::Tensor host = at::stack(on_device).cpu();
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    sum = MixSeed(sum, static_cast<std::uint64_t>(host.const_data_ptr<std::int64_t>()[i]));
  }
  return sum;
}

std::uint64_t ReplicaCheck::OfNumbers(const TrainingPosition& position) const {
  std::vector<double> numbers;
  for (const std::int64_t number :
       {position.step, position.epoch, position.cursor, position.batch_size,
        position.atomic_batch_size, position.skipped_steps, position.models_stepped, words_}) {
    numbers.push_back(static_cast<double>(number));
  }
  numbers.push_back(position.progress);
  for (const ModelPosition& model : position.models) {
    numbers.push_back(model.loss_scale);
    numbers.push_back(static_cast<double>(model.good_steps));
    for (const NoiseAverages& averages : model.noise) {
      const NoiseAverages::State n = averages.state();
      numbers.insert(numbers.end(), {n.sqr, n.trace, n.weight, n.biased});
    }
  }
  return MixSeed(numbers_, HashBits(numbers.data(), numbers.size() * sizeof(double)));
}

void ReplicaCheck::Fill(GradientBuckets& gradients, const TrainingPosition& position) {
  std::int64_t round = position.step % Rounds();
  if (stale_ || round == 0) Refresh();
  const std::int64_t rounds = Rounds();
  round = position.step % rounds;
  const std::int64_t each = (words_ + rounds - 1) / rounds;
  begin_ = all_due_ ? 0 : round * each;
  end_ = all_due_ ? words_ : std::min((round + 1) * each, words_);
  std::uint64_t of_step = 0;
  if (mode_ == Mode::kBits && !unlike_) {
    of_step = MixSeed(OfWords(begin_, end_), OfNumbers(position));
    if (all_due_) of_step = MixSeed(of_step, changed_buffers_);
  }
  Tell(gradients, GradientBuckets::kReplicaCheck, GradientBuckets::kCheckDigits, of_step);
  Tell(gradients, GradientBuckets::kMachineCheck, GradientBuckets::kMachineDigits, OfMachine());
}

bool ReplicaCheck::Agree(const GradientBuckets& gradients, int members,
                         const TrainingPosition& position) {
  all_due_ = false;
  unlike_ =
      !AllSame(gradients, GradientBuckets::kMachineCheck, GradientBuckets::kMachineDigits, members);
  if (unlike()) return true;
  if (!AllSame(gradients, GradientBuckets::kReplicaCheck, GradientBuckets::kCheckDigits, members)) {
    return false;
  }
  for (Part& part : parts_) {
    if (part.begin >= begin_ && part.begin + part.words <= end_) part.agreed_after = position.step;
  }
  return true;
}

std::uint64_t ReplicaCheck::OfAll(const TrainingPosition& position) {
  Refresh();
  return MixSeed(OfWords(0, words_), OfNumbers(position));
}

void ReplicaCheck::CountAll(const TrainingPosition& position) {
  for (Part& part : parts_) part.agreed_after = position.step;
}

std::vector<std::uint64_t> ReplicaCheck::OfEach(const TrainingPosition& position) {
  Refresh();
  std::vector<std::uint64_t> each;
  for (const Part& part : parts_) each.push_back(OfWords(part.begin, part.begin + part.words));
  each.push_back(OfNumbers(position));
  return each;
}

std::string ReplicaCheck::NameOf(std::size_t number) const {
  for (const auto& model : models_) {
    const std::vector<NamedTensor> parameters = model->model().Parameters();
    if (number < parameters.size()) {
      return absl::StrCat("parameter \"", parameters[number].name, "\"");
    }
    number -= parameters.size();
    const std::vector<std::string> tensors = model->optimizer().NamesOfTensors();
    if (number < tensors.size()) return tensors[number];
    number -= tensors.size();
  }
  return "numbers of the optimizer, a schedule, the loss scale, the gradient noise or the position";
}

std::uint64_t ReplicaCheck::OfTensor(const at::Tensor& tensor) {
  const at::Tensor here = FlatOf(tensor).cpu();
  return MixSeed(HashBits(here.const_data_ptr(), here.nbytes()), here.nbytes());
}

bool ReplicaCheck::IsStatistic(std::string_view buffer) {
  return buffer.ends_with("running_mean") || buffer.ends_with("running_var") ||
         buffer.ends_with("num_batches_tracked");
}

std::map<std::string, std::uint64_t> ReplicaCheck::OfBuffers() const {
  const at::NoGradGuard no_grad;
  std::map<std::string, std::uint64_t> hashes;
  for (const auto& model : models_) {
    for (const auto& [name, tensor] : model->model().Buffers()) {
      if (IsStatistic(name)) continue;
      hashes[absl::StrCat(model->options().name, "/", name)] = OfTensor(tensor);
    }
  }
  return hashes;
}

double ReplicaCheck::Norm() const {
  const at::NoGradGuard no_grad;
  double sqr = 0;
  for (const auto& model : models_) {
    for (const NamedTensor& p : model->model().Parameters()) {
      sqr += std::pow(p.tensor.detach().to(at::kFloat).norm().item<double>(), 2);
    }
  }
  return std::sqrt(sqr);
}

std::int64_t ReplicaCheck::LastAgreed(std::size_t number) const {
  return number < parts_.size() ? parts_[number].agreed_after : -1;
}

// What rounding depends on: the processor, what LibTorch makes of it, and the GPU.
std::uint64_t ReplicaCheck::OfMachine() {
  static const std::uint64_t kHere = [] {
    std::string text = absl::StrCat(at::get_cpu_capability(), " ", TORCH_VERSION);
    std::ifstream processors("/proc/cpuinfo");
    for (std::string line; std::getline(processors, line);) {
      if (line.starts_with("model name")) {
        absl::StrAppend(&text, line);
        break;
      }
    }
    return OfText(text);
  }();
  return kHere;
}

std::string SomeNames(const std::vector<std::string>& names, std::size_t count) {
  const std::string more =
      count > names.size() ? absl::StrCat(" and ", count - names.size(), " more") : "";
  return absl::StrCat(absl::StrJoin(names, ", "), more);
}

std::size_t OddOneOut(const std::vector<std::vector<std::int64_t>>& all, std::size_t number) {
  std::map<std::int64_t, int> votes;
  for (const auto& of_rank : all) ++votes[of_rank[number]];
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t usual = most->second > 1 ? most->first : all.front()[number];
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][number] != usual) return rank;
  }
  return 0;
}

}  // namespace espalier
