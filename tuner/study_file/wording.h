#pragma once

#include "tuner/core/state/study.h"

namespace espalier {

// A study with the fields that the wording gives, and the others as they are by default.
StudySpec FieldsOf(const StudyWording& wording);

}  // namespace espalier
