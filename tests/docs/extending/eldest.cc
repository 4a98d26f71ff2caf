#include <algorithm>

#include "allocator/policies/policy.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"

namespace espalier::policies {
namespace {

// Whatever is free goes to the trial that was submitted first, then to the next.
class Eldest final : public Policy {
 public:
  explicit Eldest(int most) : most_(most) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool);
    Mend(board, /*reclaim=*/false);
    AdmitWaiting(board, /*reclaim=*/false);
    Sizes sizes(board);
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Holder& holder = board.holder(j);
      const int slots = std::min({most_, MaxSlots(*holder.job), holder.total + board.total_free()});
      if (slots > holder.total && sizes.MayResize(j))
        sizes.Grow(j, slots, "is the eldest that can");
    }
    return sizes.Decisions();
  }

 private:
  const int most_;
};

}  // namespace

PluginRow<Policy> EldestRow() {
  return {{.name = "eldest",
           .summary = "free slots go to the trials that were submitted first",
           .options = {{.name = "most",
                        .default_value = 8,
                        .least = 1,
                        .most = 1024,
                        .whole = true,
                        .meaning = "slots up to which a trial grows"}}},
          [](const OptionValues& options) {
            return std::make_unique<Eldest>(static_cast<int>(options.Whole("most")));
          }};
}

}  // namespace espalier::policies
