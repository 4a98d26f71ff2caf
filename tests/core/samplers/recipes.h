#pragma once

#include "search_spaces/search_space.h"

namespace espalier::testing {

// Made-up trainings: how far off a model is by its parameters. Each is a space, and a function of
// it whose least value is known.

// Optimizer, learning rate that must fit the batch size, shape of the net. Momentum matters to sgd
// alone, beta2 to adam and adamw: as parameters that are always there, and as those of an option.
inline constexpr double kRecipeOptimum = 0.05;
extern const char* const kRecipeSpace;
extern const char* const kNestedRecipeSpace;
double Recipe(const Parameters& parameters);

// A support vector machine with one of three kernels, a net of one or two layers, or a forest.
inline constexpr double kClassifierOptimum = 0.06;
extern const char* const kClassifierSpace;
double Classifier(const Parameters& parameters);

// Boosted trees: integers, by their logarithm too, and axes with steps.
inline constexpr double kBoostingOptimum = 0.1;
extern const char* const kBoostingSpace;
double Boosting(const Parameters& parameters);

// How images are changed: three choices and one integer, 300 configurations.
inline constexpr double kAugmentationOptimum = 0.2;
extern const char* const kAugmentationSpace;
double Augmentation(const Parameters& parameters);

}  // namespace espalier::testing
