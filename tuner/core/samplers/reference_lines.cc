#include "tuner/core/samplers/reference_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace espalier::samplers {
namespace {

// n over k.
double BinomialCoefficient(std::size_t n, std::size_t k) {
  double count = 1;
  for (std::size_t i = 1; i <= k; ++i) {
    count = count * static_cast<double>(n - k + i) / static_cast<double>(i);
  }
  return count;
}

std::size_t DivisionsThatFit(std::size_t objectives, std::size_t divisions) {
  while (divisions > 1 && BinomialCoefficient(objectives + divisions - 1, divisions) >
                              static_cast<double>(kMostReferencePoints)) {
    --divisions;
  }
  return divisions;
}

using Matrix = std::vector<std::vector<double>>;

Matrix RowsIn(const Losses& losses) {
  Matrix rows;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    rows.emplace_back(losses[i].begin(), losses[i].end());
  }
  return rows;
}

// Moves infinite values of a column to where they can be reckoned with.
void BoundColumn(Matrix& rows, std::size_t k) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const auto& row : rows) {
    if (!std::isfinite(row[k])) continue;
    low = std::min(low, row[k]);
    high = std::max(high, row[k]);
  }
  const bool none = low > high;
  const double margin = none ? 0 : 3 * (high - low);
  for (auto& row : rows) {
    row[k] = none ? 0 : std::clamp(row[k], low - margin, high + margin);
  }
}

// The x of a * x = 1, by elimination; nullopt where a row follows from others.
std::optional<std::vector<double>> SolveForOnes(Matrix a) {
  const std::size_t n = a.size();
  double largest = 0;
  for (const auto& row : a) {
    for (const double x : row) largest = std::max(largest, std::abs(x));
  }
  const double least = largest * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
  std::vector<double> x(n, 1.0);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    }
    if (!(std::abs(a[pivot][k]) > least)) return std::nullopt;
    std::swap(a[k], a[pivot]);
    std::swap(x[k], x[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      x[i] -= factor * x[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) x[k] -= a[k][j] * x[j];
    x[k] /= a[k][k];
  }
  return x;
}

// For each objective the row that is best when the others weigh a million times as much.
Matrix Extremes(const Matrix& rows) {
  constexpr double kOthers = 1e6;
  const std::size_t objectives = rows.front().size();
  Matrix extremes;
  for (std::size_t axis = 0; axis < objectives; ++axis) {
    const auto worst = [&](const std::vector<double>& row) {
      double most = 0;
      for (std::size_t k = 0; k < objectives; ++k) {
        most = std::max(most, k == axis ? row[k] : kOthers * row[k]);
      }
      return most;
    };
    extremes.push_back(
        *std::min_element(rows.begin(), rows.end(),
                          [&](const auto& a, const auto& b) { return worst(a) < worst(b); }));
  }
  return extremes;
}

void Shuffle(std::vector<std::size_t>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.Below(i)]);
}

// The rows of one line that may still be chosen, and how many of its rows are.
struct Niche {
  std::vector<std::size_t> rows;
  std::size_t chosen = 0;
  bool shuffled = false;
};

// The next row of a line.
std::size_t TakeFrom(Niche& niche, std::span<const NearestLine> lines, Random& random) {
  if (niche.chosen == 0) {
    std::sort(niche.rows.begin(), niche.rows.end(), [&lines](std::size_t a, std::size_t b) {
      return std::pair(lines[a].distance, a) > std::pair(lines[b].distance, b);
    });
  } else if (!std::exchange(niche.shuffled, true)) {
    Shuffle(niche.rows, random);
  }
  const std::size_t row = niche.rows.back();
  niche.rows.pop_back();
  ++niche.chosen;
  return row;
}

}  // namespace

Losses ReferencePoints(std::size_t objectives, std::size_t divisions) {
  Losses points(objectives);
  std::vector<std::size_t> axes(DivisionsThatFit(objectives, divisions));  // never descends
  while (true) {
    std::vector<double> point(objectives);
    for (const std::size_t axis : axes) point[axis] += 1;
    points.Add(point);
    const auto next = std::find_if(axes.rbegin(), axes.rend(), [objectives](std::size_t axis) {
      return axis + 1 < objectives;
    });
    if (next == axes.rend()) return points;
    std::fill(axes.rbegin(), next + 1, *next + 1);
  }
}

double ReferencePointCount(std::size_t objectives, std::size_t divisions) {
  const std::size_t fitting = DivisionsThatFit(objectives, divisions);
  return BinomialCoefficient(objectives + fitting - 1, fitting);
}

Losses Normalized(const Losses& losses) {
  const std::size_t objectives = losses.objectives();
  Matrix rows = RowsIn(losses);
  std::vector<double> worst(objectives);
  for (std::size_t k = 0; k < objectives && !rows.empty(); ++k) {
    BoundColumn(rows, k);
    double best = rows.front()[k];
    for (const auto& row : rows) best = std::min(best, row[k]);
    for (auto& row : rows) {
      row[k] -= best;
      worst[k] = std::max(worst[k], row[k]);
    }
  }
  Losses normalized(objectives);
  if (rows.empty()) return normalized;
  const auto meets_axis = [](double inverse) { return inverse > 0 && std::isfinite(inverse); };
  std::optional<std::vector<double>> inverses = SolveForOnes(Extremes(rows));
  if (!inverses || !std::all_of(inverses->begin(), inverses->end(), meets_axis)) {
    inverses = worst;
    for (double& x : *inverses) x = 1 / (x > 0 ? x : 1);
  }
  for (auto& row : rows) {
    for (std::size_t k = 0; k < objectives; ++k) row[k] *= (*inverses)[k];
    normalized.Add(row);
  }
  return normalized;
}

std::vector<NearestLine> NearestLines(const Losses& normalized, const Losses& points) {
  const auto dot = [](std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  std::vector<NearestLine> nearest;
  for (std::size_t i = 0; i < normalized.size(); ++i) {
    const std::span<const double> row = normalized[i];
    NearestLine best{0, std::numeric_limits<double>::infinity()};
    for (std::size_t p = 0; p < points.size(); ++p) {
      const std::span<const double> point = points[p];
      const double along = dot(row, point) / dot(point, point);
      double square = 0;
      for (std::size_t k = 0; k < row.size(); ++k) {
        const double across = row[k] - along * point[k];
        square += across * across;
      }
      if (const double distance = std::sqrt(square); distance < best.distance) {
        best = {p, distance};
      }
    }
    nearest.push_back(best);
  }
  return nearest;
}

std::vector<std::size_t> ChooseByLines(std::span<const NearestLine> lines, std::size_t first,
                                       std::size_t count, Random& random) {
  std::map<std::size_t, Niche> niches;  // by their points
  std::vector<std::size_t> met;         // lines that rows can be chosen of, in the rows' order
  for (std::size_t row = first; row < lines.size(); ++row) {
    Niche& niche = niches[lines[row].point];
    if (niche.rows.empty()) met.push_back(lines[row].point);
    niche.rows.push_back(row);
  }
  for (std::size_t row = 0; row < first; ++row) {
    const auto niche = niches.find(lines[row].point);
    if (niche != niches.end()) ++niche->second.chosen;
  }
  std::map<std::size_t, std::vector<std::size_t>> by_chosen;  // how many rows of a line are
  for (const std::size_t point : met) by_chosen[niches[point].chosen].push_back(point);
  std::vector<std::size_t> chosen;
  while (!by_chosen.empty()) {
    const auto [number, unordered] = *by_chosen.begin();
    by_chosen.erase(by_chosen.begin());
    std::vector<std::size_t> points = unordered;
    Shuffle(points, random);
    for (; !points.empty(); points.pop_back()) {
      if (chosen.size() == count) return chosen;
      Niche& niche = niches[points.back()];
      chosen.push_back(TakeFrom(niche, lines, random));
      if (!niche.rows.empty()) by_chosen[number + 1].push_back(points.back());
    }
  }
  return chosen;
}

}  // namespace espalier::samplers
