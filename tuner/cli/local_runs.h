#pragma once

#include <string>
#include <vector>

#include "tuner/cli/options/service_options.h"

namespace espalier {

// The runs of the current folder: what `tuner run` without --dir keeps in espalier-runs/NAME.

// A study's name as that of a file or folder: `_` stands for unusual characters.
std::string FileNameOf(const std::string& study);

// The folder of a study's run.
std::string RunFolder(const std::string& study);

// The folders that hold a run, the newest first.
std::vector<std::string> LocalRuns();

// As --dir options, the newest ones; empty if there are no runs.
std::string LocalRunsText();

enum class RunsWanted {
  kAll,       // also those that have ended, whose record can be read
  kUnderWay,  // those that can be talked to
};

// Whether the local runs are what a verb may mean: no option and no environment variable names a
// service, and nothing listens at the default address.
bool MayMeanLocalRun(const ServiceArguments& service);

// Where the local runs may be meant, points `service` at one, and says so on stderr in the verb's
// name: the run of this study, else the only one. Leaves `service` as it is if there is no such
// run.
void TakeLocalRun(const std::string& verb, const std::string& study, RunsWanted wanted,
                  ServiceArguments& service);

}  // namespace espalier
