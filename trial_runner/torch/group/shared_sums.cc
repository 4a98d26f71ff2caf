#include "trial_runner/torch/group/shared_sums.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {

std::size_t SharedSums::AddAccumulator(const std::string& name,
                                       const std::vector<std::string>& sums) {
  if (group_.joined()) {
    BadUse(absl::StrCat("accumulator \"", name,
                        "\" was made after training began: make all of them before"));
  }
  const absl::StatusOr<std::size_t> begin = sums_.Declare(name, sums);
  if (!begin.ok()) EndProcess(begin.status(), kBadUseExitCode);
  ++accumulators_;
  return *begin;
}

absl::Status SharedSums::Merge(bool& all_know, bool may_leave) {
  all_know = false;
  const bool program = program_ && !program_->empty();
  if (sums_.empty() && !program) return absl::OkStatus();
  // One exchange tells all that has to be known: the sums, who knows of a newer generation, and how
  // much each has of the program's. Training stands still meanwhile.
  const std::size_t sums = sums_.own().size();
  const std::string own = program ? program_->Own() : std::string();
  auto totals = std::make_shared<std::vector<double>>(sums_.own());
  totals->push_back(may_leave && group_.Pending() ? 1 : 0);
  if (program) {
    totals->resize(totals->size() + static_cast<std::size_t>(group_.size()));
    (*totals)[sums + 1 + static_cast<std::size_t>(group_.rank())] = static_cast<double>(own.size());
  }
  ESPALIER_RETURN_IF_ERROR(group_.AllReduceSum(CollectiveBuffer::Of(totals)));
  all_know = !group_.narrowed() && std::lround((*totals)[sums]) == group_.size();
  const std::span<const double> known(*totals);
  if (program) ESPALIER_RETURN_IF_ERROR(GatherProgramSums(own, known.subspan(sums + 1)));
  sums_.Merge(known.first(sums));
  return absl::OkStatus();
}

// `sizes`: in bytes, of what each member has, by rank.
absl::Status SharedSums::GatherProgramSums(const std::string& own, std::span<const double> sizes) {
  std::vector<std::shared_ptr<std::vector<std::uint8_t>>> buffers;
  for (std::size_t from = 0; from < sizes.size(); ++from) {
    const auto size = static_cast<std::size_t>(std::lround(sizes[from]));
    buffers.push_back(std::make_shared<std::vector<std::uint8_t>>(size));
    if (size == 0) continue;
    const auto root = static_cast<int>(from);
    if (root == group_.rank()) buffers.back()->assign(own.begin(), own.end());
    group_.collectives().StartBroadcast(CollectiveBuffer::Of(buffers.back()), root);
  }
  ESPALIER_RETURN_IF_ERROR(group_.collectives().WaitAll());
  std::vector<std::string> parts;
  for (const auto& bytes : buffers) parts.emplace_back(bytes->begin(), bytes->end());
  return program_->Merge(parts);
}

}  // namespace espalier
