#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tuner/core/state/study.h"

namespace espalier {

// System attributes in which the service keeps for itself what opens it, such as the key of NNI's
// channels, or what users have confided to it, such as the environment in an experiment's
// definition, or what would be run if it came from others: a sampler's state holds pickled objects.
// They stay in the database: no client is sent one, whatever its role, no file that is
// exported has one, and no client may set one.
inline constexpr std::string_view kPrivateAttributes[] = {"nni:channel_key", "nni:definition",
                                                          "espalier:sampler_state"};

// Of a study and of its trials: what a sampler outside has stored (samplers/outside.h).
inline constexpr const char* kSamplerState = "espalier:sampler_state";

constexpr bool IsPrivateAttribute(std::string_view key) {
  return std::find(std::begin(kPrivateAttributes), std::end(kPrivateAttributes), key) !=
         std::end(kPrivateAttributes);
}

// What of them others may see.
inline Attributes WithoutPrivate(Attributes attributes) {
  std::erase_if(attributes.system,
                [](const auto& attribute) { return IsPrivateAttribute(attribute.first); });
  return attributes;
}

}  // namespace espalier
