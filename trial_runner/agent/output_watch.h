#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "trial_runner/agent/log_limit.h"
#include "trial_runner/agent/metric_reader.h"

namespace espalier {

// The log of a replica whose output has the study's metric, read as it grows. Never blocks.
class OutputWatch {
 public:
  // Null: its output is not read. Only that of a trial's first process is.
  static std::unique_ptr<OutputWatch> Of(const v1::StartReplica& start,
                                         const std::string& log_path);
  static std::unique_ptr<OutputWatch> Of(const v1::HandedReplica& handed);

  // The values since the last call. It reads some MiB at most, unless all is asked for.
  enum class HowMuch { kSome, kAll };
  std::vector<v1::ReplicaMessage> Look(HowMuch much);
  // The program has ended. `well`: of itself, and as one that has done its work; without a value it
  // has failed then, unless the trial has one from before.
  std::vector<v1::ReplicaMessage> End(bool well);
  // The program itself tells how it ends, or its values.
  void ProgramSpeaks() { program_speaks_ = true; }

  bool IsLongerThan(std::int64_t bytes) const;
  // Bytes were taken out of the log.
  void Cut(const LogCut& cut);

  v1::HandedOutput HandOver() const;

 private:
  OutputWatch(MetricReader reader, FileDescriptor log, bool has_values);

  MetricReader reader_;
  FileDescriptor log_;
  std::int64_t at_ = 0;  // read so far
  bool has_values_;      // the trial, from before it was started again
  bool program_speaks_ = false;
};

}  // namespace espalier
