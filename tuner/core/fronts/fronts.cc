#include "tuner/core/fronts/fronts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace espalier {
namespace {

using Row = std::span<const double>;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

bool SameRow(Row a, Row b) { return std::equal(a.begin(), a.end(), b.begin()); }

// Rows without their repetitions, by their values: none is dominated by a later one.
struct SortedRows {
  std::vector<std::size_t> rows;      // the first of equals
  std::vector<std::size_t> place_of;  // of each row among them
};

SortedRows SortRows(const Losses& losses) {
  std::vector<std::size_t> order(losses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&losses](std::size_t a, std::size_t b) {
    return std::lexicographical_compare(losses[a].begin(), losses[a].end(), losses[b].begin(),
                                        losses[b].end());
  });
  SortedRows sorted;
  sorted.place_of.resize(losses.size());
  for (const std::size_t row : order) {
    if (sorted.rows.empty() || !SameRow(losses[sorted.rows.back()], losses[row])) {
      sorted.rows.push_back(row);
    }
    sorted.place_of[row] = sorted.rows.size() - 1;
  }
  return sorted;
}

// In the order of their values, a row of two objectives is dominated by a front if the front's last
// row is no worse in the second: the fronts' last rows ascend in it.
std::vector<std::size_t> FrontsOfTwo(const Losses& losses, const std::vector<std::size_t>& rows) {
  std::vector<std::size_t> fronts;
  std::vector<double> last;
  for (const std::size_t row : rows) {
    const double second = losses[row][1];
    const auto at = std::upper_bound(last.begin(), last.end(), second);
    fronts.push_back(static_cast<std::size_t>(at - last.begin()));
    if (at == last.end()) {
      last.push_back(second);
    } else {
      *at = second;
    }
  }
  return fronts;
}

constexpr std::size_t kWordBits = 64;

// A set of places, of which only the words from its first to its last member are held.
class PlaceSet {
 public:
  void Insert(std::size_t place) {  // not before the first
    const std::size_t word = place / kWordBits;
    if (words_.empty()) first_ = word;
    if (word - first_ >= words_.size()) words_.resize(word - first_ + 1);
    words_[word - first_] |= std::uint64_t{1} << place % kWordBits;
  }
  bool Meets(const std::vector<std::uint64_t>& others) const {
    const std::size_t end =
        std::min(words_.size(), others.size() - std::min(others.size(), first_));
    for (std::size_t i = 0; i < end; ++i) {
      if ((words_[i] & others[first_ + i]) != 0) return true;
    }
    return false;
  }

 private:
  std::size_t first_ = 0;
  std::vector<std::uint64_t> words_;
};

// Which places are no worse than each of those from `begin` to `end`, in every objective: words of
// bits, for the places before the end.
std::vector<std::vector<std::uint64_t>> NoWorseThan(const Losses& losses,
                                                    const std::vector<std::size_t>& rows,
                                                    std::size_t begin, std::size_t end) {
  const std::size_t words = (end + kWordBits - 1) / kWordBits;
  std::vector<std::vector<std::uint64_t>> no_worse(
      end - begin, std::vector<std::uint64_t>(words, ~std::uint64_t{0}));
  std::vector<std::size_t> order(end);
  for (std::size_t objective = 1; objective < losses.objectives(); ++objective) {
    const auto value = [&](std::size_t place) { return losses[rows[place]][objective]; };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
    std::vector<std::uint64_t> so_far(words);
    for (std::size_t i = 0, equal = 0; i < end; i = equal) {
      for (equal = i; equal < end && value(order[equal]) == value(order[i]); ++equal) {
        so_far[order[equal] / kWordBits] |= std::uint64_t{1} << order[equal] % kWordBits;
      }
      for (std::size_t j = i; j < equal; ++j) {
        if (order[j] < begin) continue;
        std::vector<std::uint64_t>& bits = no_worse[order[j] - begin];
        // What comes after a place is no better in the first objective.
        for (std::size_t w = 0; w <= order[j] / kWordBits; ++w) bits[w] &= so_far[w];
      }
    }
  }
  return no_worse;
}

// Each row comes after all that dominate it, and is on the front after their last. A front whose
// rows dominate it has one on every front before, so the search is a binary one.
std::vector<std::size_t> FrontsOfMany(const Losses& losses, const std::vector<std::size_t>& rows) {
  constexpr std::size_t kAtOnce = 4096;  // bounds what is held at a time
  std::vector<std::size_t> fronts;
  std::vector<PlaceSet> members;
  for (std::size_t begin = 0; begin < rows.size(); begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, rows.size());
    std::vector<std::vector<std::uint64_t>> no_worse = NoWorseThan(losses, rows, begin, end);
    for (std::size_t place = begin; place < end; ++place) {
      std::vector<std::uint64_t>& dominators = no_worse[place - begin];
      // Of the places before it.
      dominators.resize(place / kWordBits + 1);
      dominators.back() &= (std::uint64_t{1} << place % kWordBits) - 1;
      const auto front = std::partition_point(
          members.begin(), members.end(),
          [&dominators](const PlaceSet& set) { return set.Meets(dominators); });
      fronts.push_back(static_cast<std::size_t>(front - members.begin()));
      if (front == members.end()) members.emplace_back();
      members[fronts.back()].Insert(place);
    }
  }
  return fronts;
}

std::vector<std::size_t> FrontsOf(const Losses& losses, const std::vector<std::size_t>& sorted) {
  if (losses.objectives() == 2) return FrontsOfTwo(losses, sorted);
  if (losses.objectives() > 2) return FrontsOfMany(losses, sorted);
  std::vector<std::size_t> fronts(sorted.size());
  std::iota(fronts.begin(), fronts.end(), std::size_t{0});
  return fronts;
}

// Rows of points, in objectives of which the last are dropped one by one.
using Points = std::vector<std::vector<double>>;

// Requires n >= 1 objectives; of those of a point only the first n count.
double VolumeOf(Points points, Row reference, std::size_t n);

// By slices of the second objective.
double AreaOf(Points& points, Row reference) {
  std::sort(points.begin(), points.end());
  double area = 0;
  double top = reference[1];
  for (const auto& point : points) {
    if (point[1] >= top) continue;
    area += (reference[0] - point[0]) * (top - point[1]);
    top = point[1];
  }
  return area;
}

// Whether a is no worse than b in the first n objectives.
bool NoWorse(const std::vector<double>& a, const std::vector<double>& b, std::size_t n) {
  return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin(),
                    std::less_equal<>());
}

// The volume of the i-th point without what later points have of it too, in the first n objectives:
// those are moved to where both dominate, and some of them cover others then.
double ExclusiveVolume(const Points& points, std::size_t i, Row reference, std::size_t n) {
  double volume = 1;
  for (std::size_t k = 0; k < n; ++k) volume *= reference[k] - points[i][k];
  Points shared;
  for (std::size_t j = i + 1; j < points.size(); ++j) {
    std::vector<double> both(n);
    for (std::size_t k = 0; k < n; ++k) both[k] = std::max(points[i][k], points[j][k]);
    const auto covers = [&](const std::vector<double>& other) { return NoWorse(other, both, n); };
    if (n > 2 && std::any_of(shared.begin(), shared.end(), covers)) continue;
    shared.push_back(std::move(both));
  }
  if (shared.empty()) return volume;
  return volume - VolumeOf(std::move(shared), reference, n);
}

double VolumeOf(Points points, Row reference, std::size_t n) {
  if (n == 1) {
    double least = reference[0];
    for (const auto& point : points) least = std::min(least, point[0]);
    return reference[0] - least;
  }
  if (n == 2) return AreaOf(points, reference);
  // The worst in the last objective first: what a point shares with later ones ends where it ends
  // in that objective, and is a volume in the others.
  std::stable_sort(points.begin(), points.end(),
                   [n](const auto& a, const auto& b) { return a[n - 1] > b[n - 1]; });
  double volume = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double height = reference[n - 1] - points[i][n - 1];
    if (height > 0) volume += height * ExclusiveVolume(points, i, reference, n - 1);
  }
  return volume;
}

bool Finite(Row row) {
  return std::all_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); });
}

// What a row adds to the chosen ones: its own volume without what it shares with them.
class Additions {
 public:
  Additions(const Losses& losses, Row reference) : losses_(losses), reference_(reference) {}

  double Whole(std::size_t row) const {
    double volume = 1;
    for (std::size_t k = 0; k < reference_.size(); ++k) volume *= reference_[k] - losses_[row][k];
    return volume;
  }

  // At most this: what it does not share with one of the chosen.
  double AtMost(std::size_t row, std::size_t chosen) const {
    double shared = 1;
    for (std::size_t k = 0; k < reference_.size(); ++k) {
      shared *= reference_[k] - std::max(losses_[row][k], losses_[chosen][k]);
    }
    const double whole = Whole(row);
    return std::isinf(whole) ? whole : whole - shared;
  }

  double Exact(std::size_t row, const std::vector<std::size_t>& chosen) const {
    const double whole = Whole(row);
    if (std::isinf(whole)) return whole;
    Points points = {{losses_[row].begin(), losses_[row].end()}};
    for (const std::size_t other : chosen) {
      points.emplace_back(losses_[other].begin(), losses_[other].end());
    }
    return ExclusiveVolume(points, 0, reference_, reference_.size());
  }

 private:
  const Losses& losses_;
  Row reference_;
};

// What a row adds never grows as others are chosen. So a bound from an earlier choice stands, and
// only rows whose bound is the largest are worked out.
std::vector<std::size_t> ChooseByVolume(const Losses& losses, std::vector<std::size_t> rows,
                                        std::size_t count, Row reference) {
  const Additions additions(losses, reference);
  std::vector<double> most;
  for (const std::size_t row : rows) most.push_back(additions.Whole(row));
  std::vector<std::size_t> chosen;
  while (true) {
    const auto at = std::max_element(most.begin(), most.end()) - most.begin();
    chosen.push_back(rows[static_cast<std::size_t>(at)]);
    if (chosen.size() == count) return chosen;
    rows.erase(rows.begin() + at);
    most.erase(most.begin() + at);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      most[i] = std::min(most[i], additions.AtMost(rows[i], chosen.back()));
    }
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&most](std::size_t a, std::size_t b) { return most[a] > most[b]; });
    double best = -kUnbounded;
    for (const std::size_t i : order) {
      if (most[i] < best) break;
      most[i] = additions.Exact(rows[i], chosen);
      best = std::max(best, most[i]);
    }
  }
}

struct Crowding {
  std::vector<double> distances;
  std::vector<std::size_t> order;  // of the rows by their last objective, of equals by that before
};

Crowding CrowdingOf(const Losses& losses) {
  Crowding crowding{std::vector<double>(losses.size()), std::vector<std::size_t>(losses.size())};
  auto& [distances, order] = crowding;
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t k = 0; k < losses.objectives() && !losses.empty(); ++k) {
    std::stable_sort(order.begin(), order.end(), [&losses, k](std::size_t a, std::size_t b) {
      return losses[a][k] < losses[b][k];
    });
    std::vector<double> values = {-kUnbounded};
    for (const std::size_t row : order) values.push_back(losses[row][k]);
    values.push_back(kUnbounded);
    if (values[1] == values[order.size()]) continue;  // says nothing of any
    const auto is_finite = [](double x) { return std::isfinite(x); };
    const auto low = std::find_if(values.begin(), values.end(), is_finite);
    const auto high = std::find_if(values.rbegin(), values.rend(), is_finite);
    const double range = low == values.end() ? 0 : *high - *low;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const double gap = values[i] == values[i + 2] ? 0 : values[i + 2] - values[i];
      distances[order[i]] += gap / (range > 0 ? range : 1);
    }
  }
  return crowding;
}

}  // namespace

bool Dominates(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>()) && !SameRow(a, b);
}

double Violation(std::span<const double> constraints) {
  double sum = 0;
  for (const double constraint : constraints) {
    if (std::isnan(constraint)) return kUnbounded;
    if (constraint > 0) sum += constraint;
  }
  return sum;
}

std::vector<std::size_t> FrontNumbers(const Losses& losses) {
  const SortedRows sorted = SortRows(losses);
  const std::vector<std::size_t> fronts = FrontsOf(losses, sorted.rows);
  std::vector<std::size_t> numbers;
  for (const std::size_t place : sorted.place_of) numbers.push_back(fronts[place]);
  return numbers;
}

std::vector<std::size_t> FrontNumbers(const Losses& losses, std::span<const double> violations) {
  Losses kept(losses.objectives());
  std::vector<double> broken;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (violations[i] > 0) {
      broken.push_back(violations[i]);
    } else {
      kept.Add(losses[i]);
    }
  }
  const std::vector<std::size_t> fronts = FrontNumbers(kept);
  std::size_t after = 0;
  for (const std::size_t front : fronts) after = std::max(after, front + 1);
  std::sort(broken.begin(), broken.end());
  broken.erase(std::unique(broken.begin(), broken.end()), broken.end());
  std::vector<std::size_t> numbers;
  auto front = fronts.begin();
  for (const double violation : violations) {
    if (violation > 0) {
      const auto at = std::lower_bound(broken.begin(), broken.end(), violation);
      numbers.push_back(after + static_cast<std::size_t>(at - broken.begin()));
    } else {
      numbers.push_back(*front++);
    }
  }
  return numbers;
}

std::vector<std::size_t> ParetoFront(const Losses& losses) {
  const std::vector<std::size_t> fronts = FrontNumbers(losses);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < fronts.size(); ++i) {
    if (fronts[i] == 0) rows.push_back(i);
  }
  return rows;
}

std::vector<double> CrowdingDistances(const Losses& losses) { return CrowdingOf(losses).distances; }

std::vector<std::size_t> LeastCrowded(const Losses& losses, std::size_t count) {
  Crowding crowding = CrowdingOf(losses);
  std::stable_sort(crowding.order.begin(), crowding.order.end(),
                   [&crowding](std::size_t a, std::size_t b) {
                     return crowding.distances[a] < crowding.distances[b];
                   });
  std::reverse(crowding.order.begin(), crowding.order.end());
  crowding.order.resize(count);
  return crowding.order;
}

double Hypervolume(const Losses& losses, std::span<const double> reference) {
  if (!Finite(reference)) return kUnbounded;
  if (losses.empty()) return 0;
  Points points;
  for (const std::size_t row : ParetoFront(losses)) {
    points.emplace_back(losses[row].begin(), losses[row].end());
  }
  const double volume = VolumeOf(std::move(points), reference, losses.objectives());
  if (!std::isfinite(volume)) return kUnbounded;
  return volume;
}

std::vector<std::size_t> HypervolumeSubset(const Losses& losses, std::size_t count,
                                           std::span<const double> reference) {
  if (count == 0) return {};
  const SortedRows sorted = SortRows(losses);
  std::vector<std::size_t> chosen = sorted.rows;
  if (count <= chosen.size()) {
    if (Finite(reference)) return ChooseByVolume(losses, sorted.rows, count, reference);
    chosen.resize(count);
    return chosen;
  }
  for (std::size_t row = 0; row < losses.size() && chosen.size() < count; ++row) {
    if (sorted.rows[sorted.place_of[row]] != row) chosen.push_back(row);
  }
  return chosen;
}

}  // namespace espalier
