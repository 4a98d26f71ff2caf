#include "allocator/policies/fixed.h"

#include "allocator/policies/settings.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

class Fixed : public Policy {
 public:
  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool);
    Mend(board, /*reclaim=*/false);
    AdmitWaiting(board, /*reclaim=*/false);
    return board.Decisions();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeFixed(const Options& options) {
  ESPALIER_RETURN_IF_ERROR(ReadSettings("fixed", options, {}));
  return std::make_unique<Fixed>();
}

}  // namespace espalier
