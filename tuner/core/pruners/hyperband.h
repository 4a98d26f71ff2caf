#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// Hyperband (Li et al., JMLR 2018), run asynchronously: brackets that begin to halve early and keep
// few, or late and keep many, so that nothing rests on how much an early value says. With R the
// length of a trial, bracket s has its first rung at R / eta^s, down to min_steps (s = 0: no trial
// is ended early), and a trial is judged within its own bracket as by "asha". Trials are dealt to
// brackets by their number: in every stretch of them each bracket has
// about its share, (S + 1) / (s + 1) * eta^s with S the largest s.
//
// Options: min_steps (1); eta (3), at least 2; max_steps (0: the study's max_step), R. While R is
// unknown there is one bracket, that of "asha".
absl::StatusOr<std::unique_ptr<Pruner>> MakeHyperband(const Options& options);

}  // namespace espalier
