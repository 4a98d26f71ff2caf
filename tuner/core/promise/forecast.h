#pragma once

namespace espalier {

// A predicted final value, as a cost: less is better (maximised metrics are negated).
struct Forecast {
  double mean = 0;
  double variance = 0;
};

}  // namespace espalier
