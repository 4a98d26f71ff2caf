#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/benchmarks/power_cuts/disk.h"
#include "tests/benchmarks/power_cuts/restart.h"
#include "tests/benchmarks/power_cuts/stage.h"

namespace espalier::power_cuts {

// One session as it was recorded, without faults.
struct Recorded {
  const Session* session = nullptr;
  std::map<std::string, std::string> before{};  // the disk
  Story told{};                                 // before it
  std::vector<FileCall> calls{};
  Story story{};
  SharedState restored{};  // what a restore in it made of the backup
};

// What the trials came to.
struct Tally {
  std::int64_t restarts = 0;
  std::int64_t lost = 0;
  std::int64_t half = 0;
  std::int64_t do_not_start = 0;
  std::vector<std::string> examples;  // the first ones, for people
};

// Plays the sessions and tries what a power cut or an error at any call leaves. Works in a folder
// of its own, best one in memory.
class Trials {
 public:
  Trials(std::string folder, std::size_t examples);

  // All sessions in their order.
  const std::vector<Recorded>& Record();

  // The power is cut when so many calls of the session have been done: each variant of what is
  // left is started on.
  void CutPower(const Recorded& recorded, std::int64_t done);
  // The session again, with the error at that call, from 1.
  void Fail(const Recorded& recorded, Fault fault);

  const Tally& tally() const { return tally_; }

 private:
  // Returns what is on the disk at the end.
  std::map<std::string, std::string> Play(Recorded& recorded);
  const Disk& DiskAt(const Recorded& recorded, std::int64_t done);
  std::shared_ptr<const Found> RestartOn(const std::map<std::string, std::string>& files);
  // After an error the service is started again on the same files, without a loss of power. What
  // clients are told then has to outlast one, too.
  void GoOnAndCutPower(const Story& told, const Disk& disk, const std::string& what);
  void Try(const Story& story, std::int64_t now, const std::map<std::string, std::string>& files,
           const std::string& what);

  const std::string folder_;
  const std::size_t examples_;  // at most
  std::vector<Recorded> recorded_;
  Tally tally_;
  // The disk at the moment that was asked for last: moments come in their order.
  const Recorded* disk_of_ = nullptr;
  std::int64_t disk_at_ = 0;
  std::unique_ptr<Disk> disk_;
  // Many cuts leave the same disk. By its hash, the newest last.
  std::vector<std::pair<std::size_t, std::shared_ptr<const Found>>> found_;
};

}  // namespace espalier::power_cuts
