#pragma once

#include "tuner/core/terminators/terminator.h"

namespace espalier::terminators {

// What terminators have in common that go by a model of the values.

// InvalidArgument: the space has no parameter that a model could be of.
absl::Status CanBeModelled(const SearchSpace& space);

PluginOption MinTrialsOption(double least);

}  // namespace espalier::terminators
