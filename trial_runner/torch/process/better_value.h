#pragma once

namespace espalier {

// Which of two checkpoints is the better one, by the values that were reported of their states.
enum class BetterValue { kUnknown, kSmaller, kLarger };

}  // namespace espalier
