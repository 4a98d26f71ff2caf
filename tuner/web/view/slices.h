#pragma once

#include <cstddef>
#include <functional>

#include "base/status.h"
#include "tuner/api/tuner.h"

namespace espalier::view {

// What is looked at between two commits, at the most. A unit takes the owner's thread about half a
// microsecond: a number that is copied, or an entry of a map that is found.
class Slice {
 public:
  static constexpr std::size_t kUnits = 4000;

  // Whether there is room for more: it is asked before each thing that is looked at, so that one is
  // looked at in any slice, however large it is.
  bool HasRoom() const { return spent_ < kUnits; }
  void Spend(std::size_t units) { spent_ += units; }

 private:
  std::size_t spent_ = 0;
};

// Calls `look` with slice after slice until it returns true: that it has seen all, or that it goes
// no further.
template <typename Look>
absl::Status ReadInSlices(Tuner& tuner, Look look) {
  bool done = false;
  while (!done) {
    ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
      Slice slice;
      done = look(view, slice);
    }));
  }
  return absl::OkStatus();
}

}  // namespace espalier::view
