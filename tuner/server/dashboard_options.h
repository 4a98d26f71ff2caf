#pragma once

#include <string>

namespace espalier {

struct DashboardOptions {
  std::string page_folder;      // of an installed optuna_dashboard; empty: none
  std::string artifact_folder;  // empty: no files of trials
};

}  // namespace espalier
