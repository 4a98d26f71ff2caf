#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// What a trial has told of what it has to keep, as Optuna's programs leave it among its system
// attributes, JSON texts by key: "constraints" is a list of numbers, of a sampler's
// constraints_func, and "constraints:NAME" a number, of Trial.set_constraint. A trial keeps to what
// is at most 0.

// Whether the attribute is of that.
bool IsConstraintKey(std::string_view key);

// All numbers, first those of the list and then the others by name; one of a number in the list
// replaces it, as with Optuna. NaN for what is not a number. Empty: the trial has told none.
std::vector<double> ConstraintsIn(const std::map<std::string, std::string>& system_attributes);

// Adds the list to attributes of which none is of that, for a trial that has told its constraints
// otherwise. Optuna's programs and ConstraintsIn read it.
void AddConstraints(const std::vector<double>& constraints,
                    std::map<std::string, std::string>& system_attributes);

// Whether all are at most 0. NaN is not.
bool KeepsTo(const std::vector<double>& constraints);

}  // namespace espalier
