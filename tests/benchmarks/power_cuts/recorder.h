#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/benchmarks/power_cuts/disk.h"

namespace espalier::power_cuts {

// A call that fails, as on a bad or a full disk.
struct Fault {
  std::int64_t at = 0;  // the number of the call, from 1; 0: none fails
  // EIO: that call alone fails. ENOSPC: from there on all do that need room.
  int error = 0;
};

// Stands between this process and the system, for files below one folder: recorder.cc defines the
// calls of the C library that change files, so that the program's own libraries, SQLite's and the
// C++ library's come by here. There is one at a time. Methods may be called from any thread.
class Recorder {
 public:
  explicit Recorder(const std::string& root, Fault fault = {});
  // What is below the root is on that disk, and not all of it synced.
  Recorder(const std::string& root, Disk disk);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // How many calls have been done: a moment of the run.
  std::int64_t Now() const;
  // The process is dead from now on: nothing that it does reaches the disk.
  void Freeze();
  // Those that were done, in order.
  std::vector<FileCall> Calls() const;
  Disk DiskNow() const;
  // What is wrong with the record, compared with the folder; empty: nothing.
  std::string Compare() const;
};

}  // namespace espalier::power_cuts
