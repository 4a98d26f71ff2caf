#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace espalier {

// A sampler of Optuna's, which a process of its own asks (tuner/server/optuna).
struct OutsideSampler {
  std::string name;     // of its class; empty: the package's only one, or else Optuna's default
  std::string package;  // of a hub, a folder as "samplers/auto_sampler"; empty: Optuna's own
  std::string options;  // of its constructor, by name: the JSON of an object
};

// What such a sampler keeps with a study and its trials, each the JSON of an object. It is stored
// with the trial that it was made for, so that a suggestion follows from what is stored.
struct OutsideState {
  std::string study;
  std::map<std::int64_t, std::shared_ptr<const std::string>> trials;  // by number; few have any
};

}  // namespace espalier
