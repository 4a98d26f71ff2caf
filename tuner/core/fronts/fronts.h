#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace espalier {

// What trials came to in several objectives, a row each. Less is better in every column; rows hold
// no NaN, and may hold infinities.
class Losses {
 public:
  explicit Losses(std::size_t objectives) : objectives_(objectives) {}

  // Requires as many values as there are objectives, at least one.
  void Add(std::span<const double> row) { values_.insert(values_.end(), row.begin(), row.end()); }

  std::size_t objectives() const { return objectives_; }
  std::size_t size() const { return values_.size() / objectives_; }
  bool empty() const { return values_.empty(); }
  std::span<const double> operator[](std::size_t row) const {
    return std::span(values_).subspan(row * objectives_, objectives_);
  }

 private:
  std::size_t objectives_;
  std::vector<double> values_;
};

// Whether a is nowhere worse than b, and somewhere better.
bool Dominates(std::span<const double> a, std::span<const double> b);

// By how much a trial breaks what it has to keep: the sum of its constraints above 0. Infinite
// where one of them is not known; 0 where it has told none.
double Violation(std::span<const double> constraints);

// The front that each row is on (Deb et al. 2002, section III A): 0 for rows that none dominates, 1
// for those that only rows of front 0 do, and so on. Equal rows are on one front. O(n log n) with
// up to two objectives; with more n^2/64 operations on words and n^2/8 bytes at the very most: some
// ms for 10,000 rows.
std::vector<std::size_t> FrontNumbers(const Losses& losses);

// The same under constraints (section VI A): first the fronts of the rows without violation, then
// one front for each violation, the least first. One violation a row, none of them NaN.
std::vector<std::size_t> FrontNumbers(const Losses& losses, std::span<const double> violations);

// The rows on front 0, ascending.
std::vector<std::size_t> ParetoFront(const Losses& losses);

// How far the neighbours of each row are apart, over all objectives and as a share of what is
// between the extremes (section III B). The extremes of an objective in which rows differ are
// infinitely far from others. Signs of objectives do not matter.
std::vector<double> CrowdingDistances(const Losses& losses);

// The `count` rows that are least crowded, the least first; of equals those that come last when
// rows are sorted by one objective after the other, as Optuna has them. Requires count <=
// losses.size().
std::vector<std::size_t> LeastCrowded(const Losses& losses, std::size_t count);

// The volume that the rows dominate within the reference point, which no row may be beyond in any
// objective. Infinite where it is not finite in every objective. O(n log n) with two objectives,
// and a factor of at most n more for each further one (While et al. 2012: exclusive volumes, by
// slices of the last objective).
double Hypervolume(const Losses& losses, std::span<const double> reference);

// `count` rows that dominate much volume together, in the order in which they are chosen: each is
// the one that adds most to those before it (Guerreiro et al. 2016; at least 1 - 1/e of what the
// best choice has). Rows that repeat others come last. Requires count <= losses.size(). With a
// reference point that is not finite, the first rows in the order of their values.
std::vector<std::size_t> HypervolumeSubset(const Losses& losses, std::size_t count,
                                           std::span<const double> reference);

}  // namespace espalier
