#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/ids.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier {

// A question to a terminator that may be answered on any thread: all that the answer follows from,
// as it was when it was asked. Not copied: `ended` looks into what it keeps.
struct TerminatorQuestion {
  TerminatorQuestion() = default;
  TerminatorQuestion(const TerminatorQuestion&) = delete;
  TerminatorQuestion& operator=(const TerminatorQuestion&) = delete;

  std::int64_t number = 0;
  StudyId study;
  std::string study_name;
  std::shared_ptr<const Terminator> terminator;
  SearchSpace space;
  Direction direction = Direction::kMinimize;
  std::vector<Observation> ended;
  std::uint64_t seed = 0;
  std::shared_ptr<const void> kept_of_ended{};
};

// Once `stop` is asked for, anything may be returned.
TerminatorVerdict AnswerTo(const TerminatorQuestion& question, std::stop_token stop);

}  // namespace espalier
