#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::report {

// Text for HTML and SVG, in elements and in quoted attributes. Bytes that no page may hold
// (control characters) become blanks.
std::string Escape(std::string_view text);

// A trial's colour in every picture: the palette of Okabe and Ito, told apart by people with any
// kind of colour vision; trials that share one are told apart by their numbers.
std::string TrialColor(std::int64_t number);
// Black or white, whichever is read better on that colour.
std::string InkOn(std::int64_t number);

// Values for an axis from low to high: about `count` of them, at 1, 2 or 5 times a power of ten.
std::vector<double> AxisTicks(double low, double high, int count);

// An axis that holds the values, with a margin. One that lies far out on the study's bad side is
// left out of it, so that it does not flatten all others; good ones never are.
struct Range {
  double low = 0;
  double high = 1;
};
Range FencedRange(std::vector<double> values, bool maximize);

// A horizontal line of a picture's grid, and what it stands for at its left.
std::string GridLine(double left, double right, double y, const std::string& label);

// Coordinates in SVG: one decimal.
std::string Px(double value);

}  // namespace espalier::report
