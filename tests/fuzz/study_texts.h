#pragma once

#include <string>

#include "base/check.h"
#include "tuner/core/state/study.h"

namespace espalier::fuzz {

// What goes to the system, which would end it at a zero byte.
inline void CheckText(const std::string& text) {
  ESPALIER_CHECK(text.find('\0') == std::string::npos, "no text for the system has a zero byte");
}

inline void CheckTexts(const StudySpec& study) {
  CheckText(study.directory);
  for (const std::string& word : study.command) CheckText(word);
  for (const std::string& word : study.launch) CheckText(word);
  for (const auto& [name, value] : study.environment) {
    CheckText(name);
    CheckText(value);
  }
  for (const auto& [path, remedy] : study.needs) CheckText(path);
  if (!study.preload) return;
  for (const std::string& module : *study.preload) CheckText(module);
}

}  // namespace espalier::fuzz
