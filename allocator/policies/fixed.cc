#include "allocator/policies/policy.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"

namespace espalier::policies {

namespace {

// Every trial gets its minimum (or pinned number) of slots and keeps it to its end: what tuners
// without elastic trials do.
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

PluginRow<Policy> FixedRow() {
  return {{.name = "fixed", .summary = "each trial keeps its minimum; nothing is resized"},
          [](const OptionValues&) { return std::make_unique<Fixed>(); }};
}

}  // namespace espalier::policies
