#pragma once

#include <string>

#include "base/status.h"
#include "tuner/core/state/change.h"

namespace espalier {

class Sampler;

// What a study that names another one (StudySpec::like) takes from it, as the state is now: of the
// trials that have ended there and lie within the study's space, the best half of as many as may be
// taken and others of all ranks, with their scores. They are ranked by the values of complete ones,
// then by how far pruned ones came, then by how much constraints were broken, and then come those
// that failed. A parameter counts where both spaces have it, of the same kind: a choice, a whole
// number, steps or a continuous number.
//
// InvalidArgument: there is no such study, or its trials tell nothing that the study can use; the
// error says why.
absl::StatusOr<LikeStudy> TrialsLike(const TunerState& state, const StudySpec& spec);

// Whether the study can be like another, and the trials it has taken are what TrialsLike gives.
absl::Status ValidateLike(const StudySpec& spec, const Sampler& sampler);

// In words, for people: which trials of which study, and what of the space these do not tell of.
// Empty: the study is like no other.
std::string LikeText(const StudySpec& spec);

}  // namespace espalier
