#pragma once

#include <string>

#include "tuner.pb.h"

namespace espalier {

// One row a trial and reported step (one row without a step for a trial that reported nothing):
//   trial,state,<parameters...>,step,value,at_s,global_batch_size,slots,final_value,started_s,
//   ended_s,slot_seconds,restarts,reason and, where the nodes' prices are on record, paid
// With several directions final_value_2 and further ones follow on final_value.
// at_s, started_s and ended_s count from the study's creation; slots are those held at at_s. RFC
// 4180: CRLF is not used, fields with commas, quotes or line ends are quoted. NaN is "nan".
std::string ExportCsv(const v1::StudyDetails& details);

}  // namespace espalier
