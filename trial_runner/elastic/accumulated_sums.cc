#include "trial_runner/elastic/accumulated_sums.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <locale>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace espalier {
namespace {

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

absl::Status CheckName(const std::string& accumulator, const std::string& name) {
  if (IsName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("accumulator \"", accumulator, "\": \"", name,
                   "\" is no name: want letters, digits, '_', '-' and '.'"));
}

void Clear(std::vector<double>& values) { std::fill(values.begin(), values.end(), 0.0); }

}  // namespace

absl::StatusOr<std::size_t> AccumulatedSums::Declare(const std::string& name,
                                                     const std::vector<std::string>& sums) {
  ESPALIER_RETURN_IF_ERROR(CheckName(name, name));
  if (sums.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("accumulator \"", name, "\": want the name of at least one sum"));
  }
  const std::string prefix = absl::StrCat(name, " ");
  for (const std::string& other : names_) {
    if (!other.starts_with(prefix)) continue;
    return absl::AlreadyExistsError(absl::StrCat("there is already an accumulator named \"", name,
                                                 "\": want a name of its own for each"));
  }
  const std::size_t begin = names_.size();
  for (const std::string& sum : sums) {
    ESPALIER_RETURN_IF_ERROR(CheckName(name, sum));
    const std::string full = absl::StrCat(prefix, sum);
    if (std::find(names_.begin(), names_.end(), full) != names_.end()) {
      return absl::AlreadyExistsError(
          absl::StrCat("accumulator \"", name, "\": sum \"", sum, "\" is named twice"));
    }
    names_.push_back(full);
  }
  for (auto* values : {&shared_, &own_, &open_}) values->resize(names_.size());
  return begin;
}

void AccumulatedSums::Add(std::size_t index, double value) {
  switch (phase_) {
    case Phase::kUnderWay:
      open_.at(index) += value;
      return;
    case Phase::kCounted:
      own_.at(index) += value;
      return;
    case Phase::kDropped:
      return;
  }
}

void AccumulatedSums::CountStep() {
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i] += open_[i];
  Clear(open_);
  phase_ = Phase::kCounted;
}

void AccumulatedSums::DropStep() {
  if (phase_ == Phase::kUnderWay) phase_ = Phase::kDropped;
  Clear(open_);
}

void AccumulatedSums::Merge(std::span<const double> totals) {
  ESPALIER_CHECK(totals.size() == shared_.size(), "as many totals as sums");
  for (std::size_t i = 0; i < shared_.size(); ++i) shared_[i] += totals[i];
  Clear(own_);
  ++merges_;
}

std::vector<double> AccumulatedSums::Take(std::size_t begin, std::size_t count) {
  const auto first = shared_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  std::vector<double> taken(first, last);
  std::fill(first, last, 0.0);
  return taken;
}

void AccumulatedSums::Forget(std::size_t begin, std::size_t count) {
  std::fill_n(own_.begin() + static_cast<std::ptrdiff_t>(begin), count, 0.0);
}

std::string AccumulatedSums::Encode() const {
  std::string text = absl::StrCat(merges_, " ", names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {  // by their bits: nothing is rounded
    absl::StrAppend(&text, " ", names_[i], " ", std::bit_cast<std::int64_t>(shared_[i]));
  }
  return text;
}

absl::Status AccumulatedSums::Adopt(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  std::int64_t merges = 0;
  std::size_t count = 0;
  in >> merges >> count;
  std::vector<double> shared(names_.size());
  for (std::size_t i = 0; i < std::max(count, names_.size()) && in; ++i) {
    std::string accumulator;
    std::string sum;
    std::int64_t bits = 0;
    if (i < count && !(in >> accumulator >> sum >> bits)) break;
    const std::string name = absl::StrCat(accumulator, " ", sum);
    if (i >= count || i >= names_.size() || name != names_[i]) {
      return absl::FailedPreconditionError(
          absl::StrCat("accumulators differ: \"", i < names_.size() ? names_[i] : "", "\" here, \"",
                       i < count ? name : "", "\" there: want the same program on all replicas"));
    }
    shared[i] = std::bit_cast<double>(bits);
  }
  if (!in) return absl::DataLossError("accumulated sums are damaged or of another version");
  if (merges != merges_) {  // what this replica had added is among them
    Clear(own_);
    Clear(open_);
  }
  shared_ = std::move(shared);
  merges_ = merges;
  return absl::OkStatus();
}

absl::Status AccumulatedSums::Restore(std::string_view text) {
  ESPALIER_RETURN_IF_ERROR(Adopt(text));
  Clear(own_);
  Clear(open_);
  return absl::OkStatus();
}

}  // namespace espalier
