#include "search_spaces/combinations.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace espalier {
namespace {

constexpr std::uint64_t kMostCount = std::numeric_limits<std::uint64_t>::max();

std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  return a > kMostCount / b ? kMostCount : a * b;
}
std::uint64_t Plus(std::uint64_t a, std::uint64_t b) {
  return a > kMostCount - b ? kMostCount : a + b;
}

}  // namespace

Combinations::Combinations(const SearchSpace& space, std::vector<std::uint64_t> counts)
    : sizes_(std::move(counts)), branches_(sizes_.size()) {
  const auto& dimensions = space.dimensions();
  ESPALIER_CHECK(sizes_.size() == dimensions.size(), "one count a dimension");
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (const auto* choice = std::get_if<Choice>(&dimensions[i].distribution);
        choice != nullptr && choice->nested) {
      branches_[i].resize(choice->options.size());
    }
    const auto& condition = dimensions[i].condition;
    (condition ? branches_[condition->parent][condition->option] : roots_).push_back(i);
  }
  // A dimension comes after what it depends on.
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    if (branches_[i].empty()) continue;
    sizes_[i] = 0;
    for (const Group& branch : branches_[i]) sizes_[i] = Plus(sizes_[i], Product(branch));
  }
}

std::uint64_t Combinations::Product(const Group& group) const {
  std::uint64_t product = 1;
  for (const std::size_t i : group) product = Times(product, sizes_[i]);
  return product;
}

std::optional<Combinations::Indices> Combinations::At(std::uint64_t number) const {
  Indices indices(sizes_.size());
  if (Place(roots_, number, indices) > 0) return std::nullopt;
  return indices;
}

// What is left of the number when the group has taken its part.
std::uint64_t Combinations::Place(const Group& group, std::uint64_t number,
                                  Indices& indices) const {
  for (auto i = group.rbegin(); i != group.rend(); ++i) {
    std::uint64_t own = number % sizes_[*i];
    number /= sizes_[*i];
    if (!branches_[*i].empty()) {
      std::size_t option = 0;
      while (own >= Product(branches_[*i][option])) own -= Product(branches_[*i][option++]);
      Place(branches_[*i][option], own, indices);
      own = option;
    }
    indices[*i] = own;
  }
  return number;
}

std::uint64_t Combinations::NumberOf(const Indices& indices) const {
  return Number(roots_, indices);
}

std::uint64_t Combinations::Number(const Group& group, const Indices& indices) const {
  std::uint64_t number = 0;
  for (const std::size_t i : group) {
    std::uint64_t own = *indices[i];
    if (!branches_[i].empty()) {
      const auto option = static_cast<std::size_t>(own);
      own = Number(branches_[i][option], indices);
      for (std::size_t o = 0; o < option; ++o) own += Product(branches_[i][o]);
    }
    number = number * sizes_[i] + own;
  }
  return number;
}

}  // namespace espalier
