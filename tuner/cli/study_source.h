#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tuner.pb.h"
#include "tuner/cli/options/service_options.h"

namespace espalier {

class CliCommand;
struct TunerState;

// The source from which a verb reads studies: a running service, or a database file without one.
class StudySource {
 public:
  virtual ~StudySource() = default;
  virtual absl::StatusOr<v1::ListStudiesResponse> ListStudies() = 0;
  // Leaves out the trials' values if they are not wanted.
  virtual absl::StatusOr<v1::StudyDetails> GetStudy(const std::string& name,
                                                    bool with_values = true) = 0;
  // See api::GetTrialOutput. Without a service: what a `tuner run` has left beside its database.
  virtual absl::StatusOr<v1::TrialOutput> GetTrialOutput(const v1::TrialOutputRequest& request) = 0;
  // Whether it is a service, and not a file that a service has left.
  virtual bool live() const = 0;
  // Seconds since the epoch to which an open span lasts.
  virtual double Now() const = 0;
};

// Of --dir, where runs that have ended are read too.
inline constexpr const char* kRunOrItsRecord =
    "Folder of a `tuner run` to talk to, or to read once it has ended (default, where no service "
    "answers: that of the study in espalier-runs, or the only one there)";

// The options that choose the source: --db, or those of ServiceArguments. With --dir of a run that
// has ended the run's database is read.
struct SourceArguments {
  ServiceArguments service;
  std::string database;

  void AddTo(CliCommand& command);
  absl::StatusOr<std::unique_ptr<StudySource>> Open() const;
};

// Reads a database without a service. NOT_FOUND for a study that it does not hold; anything wrong
// with the file itself is INVALID_ARGUMENT.
absl::StatusOr<std::unique_ptr<StudySource>> OpenDatabase(const std::string& path);

// Reads a state that is in memory.
std::unique_ptr<StudySource> SourceOfState(TunerState state);

}  // namespace espalier
