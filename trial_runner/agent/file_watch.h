#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "handover.pb.h"
#include "trial_runner/agent/value_records.h"

namespace espalier {

// So many files of events are followed below a folder, so deep; what else is there is looked at no
// further.
inline constexpr std::size_t kMaxEventFiles = 256;
inline constexpr int kMaxFolderDepth = 8;
inline constexpr int kMaxFolderEntries = 4096;

// The files in which a trial's program writes the study's metric, read as they grow: a file of JSON
// lines, or all files of TensorBoard's events below a folder, by any number of writers. What is
// there before the program starts is not read. Regular files alone are opened, so that nothing
// blocks but a disk.
class FileWatch {
 public:
  // To be made before the program starts. Null: its values are not in files. Only the files of a
  // trial's first process are read. The metric's path is absolute.
  static std::unique_ptr<FileWatch> Of(const v1::StartReplica& start);
  static std::unique_ptr<FileWatch> Of(const v1::HandedReplica& handed);

  // The values since the last call; it reads some MiB at most.
  std::vector<v1::ReplicaMessage> Look();
  // The program has ended. `well`: of itself, and as one that has done its work; without a value it
  // has failed then, unless the trial has one from before.
  std::vector<v1::ReplicaMessage> End(bool well);
  // The program itself tells how it ends, or its values.
  void ProgramSpeaks() { program_speaks_ = true; }

  v1::HandedFiles HandOver() const;

 private:
  struct File {
    std::int64_t at = 0;  // read so far
    ino_t inode = 0;      // 0: it has not been opened
    FileDescriptor open;  // of a file of lines, which may be renamed while it has more
  };

  explicit FileWatch(const v1::StartReplica& start);
  bool of_events() const { return !metric_.tag().empty(); }
  void FindFiles();
  void FindEventFiles(const std::string& folder, int depth, int& entries);
  void Read(std::int64_t most, bool ends, std::vector<v1::ReplicaMessage>& messages);
  void ReadFile(const std::string& path, File& file, bool ends, std::int64_t& most,
                std::vector<v1::Report>& reports);
  void ReadOpen(int descriptor, File& file, bool ends, std::int64_t& most,
                std::vector<v1::Report>& reports);
  std::string WhyNone() const;

  v1::FileMetric metric_;
  ValueRecords records_;
  std::map<std::string, File> files_;  // by path
  int looks_ = 0;
  bool has_values_;  // the trial, from before it was started again
  bool program_speaks_ = false;
};

}  // namespace espalier
