#include "tuner/core/terminators/question.h"

#include <utility>

namespace espalier {

TerminatorVerdict AnswerTo(const TerminatorQuestion& question, std::stop_token stop) {
  return question.terminator->Judge({.space = question.space,
                                     .direction = question.direction,
                                     .ended = question.ended,
                                     .seed = question.seed,
                                     .stop = std::move(stop)});
}

}  // namespace espalier
