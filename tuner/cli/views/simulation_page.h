#pragma once

#include <string>

#include "allocator/simulator/timeline.h"
#include "tuner.pb.h"

namespace espalier {

// A timeline as the record of a study, for the report page: rows are its trials by number, and each
// span has slots of its own. A timeline tells only how many slots a row held; which ones is chosen
// here so that a row keeps what it has. All slots are shown as those of one node.
v1::StudyDetails DetailsOf(const std::string& name, const Timeline& timeline);

// With several policies each has a page of its own: page.html becomes page-NAME.html.
std::string SimulationPagePath(const std::string& path, const std::string& policy,
                               std::size_t policies);

}  // namespace espalier
