#include "allocator/policies/yardsticks/nsga2.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace espalier {

namespace {

constexpr double kCrossing = 0.9;
// In a row without a new genome: a small problem has no more of them.
constexpr int kMostFutileMatings = 3;
constexpr double kLoneliest = 1e14;  // crowding at the ends of a front

// Two genomes with one hash are taken to be one: among the some 10,000 of a search that happens
// once in 10^11 searches.
std::uint64_t HashOf(const Genome& genome) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  std::size_t i = 0;
  for (; i + 4 <= genome.size(); i += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, &genome[i], sizeof(word));
    hash = (hash ^ word) * 0xD1B54A32D192ED03ULL;
    hash ^= hash >> 29;
  }
  for (; i < genome.size(); ++i) hash = (hash ^ genome[i]) * 0xD1B54A32D192ED03ULL;
  return hash ^ (hash >> 32);
}

bool Dominates(const Costs& a, const Costs& b) {
  return a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1]);
}

void Shuffle(std::vector<std::size_t>& order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
}

// Fronts of candidates, each in ascending order of the first objective.
std::vector<std::vector<std::size_t>> Fronts(const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return candidates[a].costs < candidates[b].costs;
  });
  std::vector<std::vector<std::size_t>> fronts;
  for (const std::size_t i : order) {
    const Costs& costs = candidates[i].costs;
    // All before it are no worse in the first objective: the last of each front tells, and fronts
    // that come later have later ones.
    const auto front = std::partition_point(fronts.begin(), fronts.end(), [&](const auto& f) {
      return Dominates(candidates[f.back()].costs, costs);
    });
    if (front == fronts.end()) {
      fronts.push_back({i});
    } else {
      front->push_back(i);
    }
  }
  return fronts;
}

void SetCrowding(std::vector<Candidate>& candidates, const std::vector<std::size_t>& front) {
  if (front.size() <= 2) {
    for (const std::size_t i : front) candidates[i].crowding = kLoneliest;
    return;
  }
  // Among candidates of equal costs only the first counts; the others have no distance at all.
  std::vector<std::size_t> distinct;
  for (const std::size_t i : front) {
    candidates[i].crowding = 0;
    if (distinct.empty() || candidates[distinct.back()].costs != candidates[i].costs) {
      distinct.push_back(i);
    }
  }
  const Costs& first = candidates[distinct.front()].costs;
  const Costs& last = candidates[distinct.back()].costs;
  candidates[distinct.front()].crowding = kLoneliest;
  candidates[distinct.back()].crowding = kLoneliest;
  // Along a front one objective rises as the other falls: the neighbours are the same in both.
  for (std::size_t d = 1; d + 1 < distinct.size(); ++d) {
    const Costs& before = candidates[distinct[d - 1]].costs;
    const Costs& after = candidates[distinct[d + 1]].costs;
    candidates[distinct[d]].crowding = ((after[0] - before[0]) / (last[0] - first[0]) +
                                        (before[1] - after[1]) / (first[1] - last[1])) /
                                       2;
  }
}

std::size_t Winner(const std::vector<Candidate>& population, std::size_t a, std::size_t b,
                   Random& random) {
  if (Dominates(population[a].costs, population[b].costs)) return a;
  if (Dominates(population[b].costs, population[a].costs)) return b;
  if (population[a].crowding != population[b].crowding) {
    return population[a].crowding > population[b].crowding ? a : b;
  }
  return random.Below(2) == 0 ? a : b;
}

// The winners of tournaments in which each candidate fights equally often.
std::vector<std::size_t> Parents(const std::vector<Candidate>& population, std::size_t count,
                                 Random& random) {
  std::vector<std::size_t> fighters;
  std::vector<std::size_t> order(population.size());
  std::iota(order.begin(), order.end(), 0);
  while (fighters.size() < 2 * count) {
    Shuffle(order, random);
    fighters.insert(fighters.end(), order.begin(), order.end());
  }
  std::vector<std::size_t> parents(count);
  for (std::size_t i = 0; i < count; ++i) {
    parents[i] = Winner(population, fighters[2 * i], fighters[2 * i + 1], random);
  }
  return parents;
}

class Search {
 public:
  Search(GeneticProblem& problem, const Nsga2Options& options, Random& random)
      : problem_(problem), most_(static_cast<std::size_t>(options.population)), random_(random) {}

  void Start(const std::vector<Genome>& first) {
    for (Genome genome : first) Take(std::move(genome));
    EndGeneration();
  }

  void NextGeneration() {
    int futile = 0;
    while (children_.size() < most_ && futile < kMostFutileMatings) {
      const std::size_t before = children_.size();
      Mate(most_ - before);
      futile = children_.size() == before ? futile + 1 : 0;
    }
    EndGeneration();
  }

  std::vector<Candidate> Population() && { return std::move(population_); }

 private:
  void Mate(std::size_t children) {
    const std::vector<std::size_t> parents = Parents(population_, children + children % 2, random_);
    for (std::size_t i = 0; i < children; i += 2) {
      Genome a = population_[parents[i]].genome;
      Genome b = population_[parents[i + 1]].genome;
      if (random_.Uniform() < kCrossing) problem_.Cross(a, b, random_);
      problem_.Mutate(a, random_);
      problem_.Mutate(b, random_);
      Take(std::move(a));
      if (i + 1 < children) Take(std::move(b));
    }
  }

  void Take(Genome genome) {
    problem_.Repair(genome, random_);
    if (!known_.insert(HashOf(genome)).second) return;
    const Costs costs = problem_.Evaluate(genome);
    children_.push_back({.genome = std::move(genome), .costs = costs});
  }

  void EndGeneration() {
    for (Candidate& child : children_) population_.push_back(std::move(child));
    children_.clear();
    Survive(population_, most_);
    known_.clear();
    for (const Candidate& candidate : population_) known_.insert(HashOf(candidate.genome));
  }

  GeneticProblem& problem_;
  const std::size_t most_;
  Random& random_;
  std::vector<Candidate> population_;
  std::vector<Candidate> children_;
  std::set<std::uint64_t> known_;  // genomes of both
};

}  // namespace

void Survive(std::vector<Candidate>& candidates, std::size_t most) {
  std::vector<std::size_t> kept;
  int rank = 0;
  for (std::vector<std::size_t>& front : Fronts(candidates)) {
    if (kept.size() >= most) break;
    SetCrowding(candidates, front);
    for (const std::size_t i : front) candidates[i].rank = rank;
    if (kept.size() + front.size() > most) {
      std::stable_sort(front.begin(), front.end(), [&](std::size_t a, std::size_t b) {
        return candidates[a].crowding > candidates[b].crowding;
      });
      front.resize(most - kept.size());
    }
    kept.insert(kept.end(), front.begin(), front.end());
    ++rank;
  }
  std::vector<Candidate> survivors;
  survivors.reserve(kept.size());
  for (const std::size_t i : kept) survivors.push_back(std::move(candidates[i]));
  candidates = std::move(survivors);
}

std::vector<Candidate> Nsga2(GeneticProblem& problem, const std::vector<Genome>& first,
                             const Nsga2Options& options, Random& random) {
  ESPALIER_CHECK(!first.empty() && options.population > 0, "a search starts from something");
  Search search(problem, options, random);
  search.Start(first);
  for (int g = 1; g < options.generations; ++g) search.NextGeneration();
  return std::move(search).Population();
}

}  // namespace espalier
