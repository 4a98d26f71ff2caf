#pragma once

#include <optional>

namespace espalier {

// A study that waits for its turn: where trials are too large for a pool to be divided evenly at
// each moment, studies have it one after the other.
struct StudyWait {
  int slots = 0;  // of its next trial
  int free = 0;   // of them; they are kept for it if it is its turn
  bool its_turn = false;
  // Until the others come free, if trials take as long as before; nullopt: none has ended yet.
  std::optional<double> about_s{};
};

}  // namespace espalier
