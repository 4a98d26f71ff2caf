#pragma once

// Private to the samplers: what one of them adds to the table in sampler.cc.

#include <memory>
#include <string_view>
#include <vector>

#include "tuner/base/options.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

struct Option {
  std::string_view name;
  double standard;
  double least;
  double most;
  bool whole;  // takes whole numbers only
};

// `make` gets every option of its row: those not given have their standard value.
struct Row {
  std::string_view name;
  std::vector<Option> options;
  std::unique_ptr<Sampler> (*make)(const Options& options);
};

Row RandomRow();
Row GridRow();
Row TpeRow();
Row QueueRow();

}  // namespace espalier::samplers
