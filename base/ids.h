#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace espalier {

// A number that names one kind of thing. Ids of different kinds do not compare or convert, zero
// means "none", and no id is ever used twice in the life of a database.
template <typename Tag>
struct Id {
  std::int64_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t v) : value(v) {}
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using StudyId = Id<struct StudyTag>;
using TrialId = Id<struct TrialTag>;  // unique over all studies; Trial::number counts in a study
using ReplicaId = Id<struct ReplicaTag>;  // one process of a trial, from start to exit
using NodeId = Id<struct NodeTag>;        // one agent, from Hello to loss

}  // namespace espalier

template <typename Tag>
struct std::hash<espalier::Id<Tag>> {
  std::size_t operator()(espalier::Id<Tag> id) const noexcept {
    return std::hash<std::int64_t>{}(id.value);
  }
};
