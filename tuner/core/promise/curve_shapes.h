#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace espalier {

// One reported value, or the mean of several neighbouring ones, as a cost: less is better.
struct CurvePoint {
  double step = 0;
  double cost = 0;
  double count = 1;
};

// A fixed family of falling curves: power laws (1 + t/T)^-a and stretched exponentials
// exp(-(t/T)^a) of many speeds T, each scaled so that it is 1 at the first step and 0 at the last.
// Between them they pass near what losses and errors do (Domhan et al., IJCAI 2015, compare such
// families). Values come from a table that is linear between its steps.
class CurveShapes {
 public:
  // Requires 0 <= first_step < last_step.
  CurveShapes(double first_step, double last_step);

  std::size_t size() const { return size_; }
  // The values of all shapes at `step`; good until the next call.
  std::span<const double> At(double step);

  double last_step() const { return first_ + length_; }

 private:
  double first_ = 0, length_ = 1;
  bool whole_ = false;  // the table has every whole step; else it is finer where curves are young
  std::size_t rows_ = 0, size_ = 0;
  std::vector<double> table_;  // by step, then shape
  std::vector<double> at_;
};

}  // namespace espalier
