#pragma once

#include <string>

#include "base/status.h"
#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// What GetTrialOutput answers, and how it grows.
struct OutputText {
  std::string text;
  // What is printed from now on comes after it. False: it may come within, since several replicas
  // or machines print, or some do not answer.
  bool grows_at_its_end = true;
};

absl::StatusOr<OutputText> ReadTrialOutput(Tuner& tuner, const v1::TrialOutputRequest& request);

}  // namespace espalier::api
