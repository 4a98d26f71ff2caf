#pragma once

#include <cstdint>
#include <span>

namespace espalier::samplers {

// What one dimension of a Sobol' sequence is made of: a primitive polynomial over the integers
// modulo 2, its coefficients as bits (11 is x^3 + x + 1), and as many odd numbers as its degree.
struct SobolDirection {
  std::uint16_t polynomial;
  std::uint16_t m[11];  // m_1, m_2, ...; 0 after the last one
};

// Of the second dimension and of further ones, 255; the first has none. After Joe and Kuo 2008,
// "Constructing Sobol sequences with better two-dimensional projections" (new-joe-kuo-6.21201).
std::span<const SobolDirection> SobolDirections();

}  // namespace espalier::samplers
