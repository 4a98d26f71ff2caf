#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
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
  std::deque<Parameters> kept{};
};

// Once `stop` is asked for, anything may be returned.
std::optional<std::string> AnswerTo(const TerminatorQuestion& question, std::stop_token stop);

}  // namespace espalier
