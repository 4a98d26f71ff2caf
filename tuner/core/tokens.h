#pragma once

#include "tuner/core/state/turn.h"

namespace espalier {

// Tokens that let others in: kept here, since this is what is durable. What is refused is the
// reply's status.
class Tokens {
 public:
  explicit Tokens(Turn& turn) : turn_(turn) {}

  void On(const AddToken& event);
  void On(const RemoveToken& event);

 private:
  Turn& turn_;
};

}  // namespace espalier
