#include "allocator/policies/fixed.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/policies/admission.h"
#include "allocator/policies/board.h"

namespace espalier {

namespace {

class Fixed : public Policy {
 public:
  std::vector<AllocationDecision> Allocate(const Pool& pool) const override {
    Board board(pool);
    Mend(board, /*reclaim=*/false);
    AdmitWaiting(board, /*reclaim=*/false);
    return board.Decisions();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeFixed(const Options& options) {
  if (!options.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy \"fixed\" takes no options, got \"", options.begin()->first, "\""));
  }
  return std::make_unique<Fixed>();
}

}  // namespace espalier
