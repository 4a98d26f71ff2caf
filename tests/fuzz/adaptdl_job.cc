// Jobs of AdaptDL's, in YAML.

#include "tuner/study_file/adaptdl_job.h"

#include "tests/fuzz/input.h"
#include "tuner/study_file/study_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const absl::StatusOr<AdaptDLJob> job = ReadAdaptDLJob(fuzz::TextOf(data, size), "job.yaml");
  if (!job.ok()) return 0;
  const absl::StatusOr<StudySpec> study = ParseStudy(job->study_json, "job.yaml", "/");
  if (study.ok()) ESPALIER_CHECK(study->max_trials == 1, "a job is a study of one trial");
  return 0;
}
