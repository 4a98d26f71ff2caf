#pragma once

#include <string>
#include <vector>

namespace espalier::report {

// What the axes of a report's pictures show. Pure.

// Values for an axis from low to high: about `count` of them, at 1, 2 or 5 times a power of ten.
std::vector<double> AxisTicks(double low, double high, int count);
// Likewise of times, at round numbers of seconds, minutes, hours or days.
std::vector<double> TimeTicks(double low_s, double high_s, int count);

// The texts of ticks, each of which differs from all others.
std::vector<std::string> ValueLabels(const std::vector<double>& ticks);
std::vector<std::string> TimeLabels(const std::vector<double>& ticks_s);

// An axis that holds the values, with a small margin. One that lies far out on the study's bad side
// is left out of it, so that it does not flatten all others; good ones never are.
struct Range {
  double low = 0;
  double high = 1;
};
Range FencedRange(std::vector<double> values, bool maximize);

// A horizontal line of a picture's grid, and what it stands for at its left.
std::string GridLine(double left, double right, double y, const std::string& label);

}  // namespace espalier::report
