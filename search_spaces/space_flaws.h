#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "search_spaces/search_space.h"

namespace espalier {

// One thing that is wrong with a search space's text.
struct SpaceFlaw {
  std::string pointer;   // JSON pointer in the document
  std::size_t line = 0;  // in the document, from 1
  // search space "lr": loguniform needs low > 0, got 0
  std::string message;

  // "/lr/_value/0, line 3: search space ..."
  std::string Text() const;
};

struct SearchSpaceReading {
  SearchSpace space;             // has no parameters where there are flaws
  std::vector<SpaceFlaw> flaws;  // all of them, in the order of the text

  // "the first (lr/_value/0, line 3); and 2 more". InvalidArgument.
  absl::Status status() const;
};

}  // namespace espalier
