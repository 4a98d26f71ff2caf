#include "tests/benchmarks/power_cuts/recorder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace espalier::power_cuts {
namespace {

namespace fs = std::filesystem;

// The system's own call of that name.
template <typename Function>
Function* Real(const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  if (found == nullptr) abort();
  return found;
}

struct Place {
  Node folder = kNoNode;
  std::string name;
  Node node = kNoNode;  // what is there; none: nothing
};

struct Record {
  std::string root;
  Fault fault;
  Disk disk;
  std::map<int, Node> open;  // by descriptor
  std::vector<FileCall> calls;
  std::int64_t tried = 0;
  bool frozen = false;
};

// Constructed before the first call, and never destroyed: others run to the end of the process.
std::recursive_mutex& Mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}
std::unique_ptr<Record>& Current() {
  static auto& record = *new std::unique_ptr<Record>;
  return record;
}
std::atomic<bool> recording = false;

// Where a path leads, if it is below the root. `at` is a descriptor of a folder, as openat takes
// it.
std::optional<Place> Look(int at, const char* path) {
  const Record& record = *Current();
  Node node = kRoot;
  std::string rest;
  if (path[0] != '/' && at != AT_FDCWD) {
    const auto from = record.open.find(at);
    if (from == record.open.end()) return std::nullopt;
    node = from->second;
    rest = path;
  } else {
    const std::string whole = fs::absolute(path).lexically_normal().string();
    if (!whole.starts_with(record.root + "/") && whole != record.root) return std::nullopt;
    rest = whole.substr(std::min(whole.size(), record.root.size() + 1));
  }
  Place place{kNoNode, "", node};
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    place.folder = place.node;
    place.name = rest.substr(0, slash);
    rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (place.name.empty() || place.name == ".") continue;
    place.node = record.disk.Find(place.folder, place.name);
    if (place.node == kNoNode && !rest.empty()) return std::nullopt;  // the system says so, too
  }
  return place;
}

bool NeedsRoom(FileCall::Kind kind) {
  switch (kind) {
    case FileCall::Kind::kCreate:
    case FileCall::Kind::kWrite:
    case FileCall::Kind::kRename:
    case FileCall::Kind::kExchange:
    case FileCall::Kind::kLink:
    case FileCall::Kind::kMakeFolder:
      return true;
    case FileCall::Kind::kTruncate:
    case FileCall::Kind::kSync:
    case FileCall::Kind::kUnlink:
    case FileCall::Kind::kRemoveFolder:
    case FileCall::Kind::kFailedSync:
      return false;
  }
  return false;
}

// Counts a call that is about to be done; false: it fails, with errno.
bool MayGoOn(FileCall::Kind kind) {
  Record& record = *Current();
  if (record.frozen) {
    errno = EIO;
    return false;
  }
  const std::int64_t number = ++record.tried;
  const Fault& fault = record.fault;
  const bool lasting = fault.error == ENOSPC && number > fault.at && NeedsRoom(kind);
  if (fault.at == 0 || (number != fault.at && !lasting)) return true;
  errno = fault.error;
  return false;
}

void Done(FileCall call) {
  Record& record = *Current();
  record.disk.Apply(call);
  record.calls.push_back(std::move(call));
}

// The call, if it concerns no file of the record: then it is done as it is.
#define ESPALIER_UNLESS_RECORDING(call) \
  if (!recording.load()) return call;   \
  const std::lock_guard lock(Mutex());  \
  if (Current() == nullptr) return call

template <typename Open>
int OpenRecorded(int at, const char* path, int flags, const Open& open) {
  const std::optional<Place> place = Look(at, path);
  const bool makes = place && place->node == kNoNode && (flags & O_CREAT) != 0;
  if (makes && !MayGoOn(FileCall::Kind::kCreate)) return -1;
  if (place && place->node != kNoNode && (flags & O_TRUNC) != 0) abort();  // not done by us
  const int file = open();
  if (file < 0) return file;
  Record& record = *Current();
  record.open.erase(file);
  if (!place) return file;
  Node node = place->node;
  if (makes) {
    node = record.disk.NextNode();
    Done({.kind = FileCall::Kind::kCreate,
          .node = node,
          .folder = place->folder,
          .name = place->name});
  }
  if (node != kNoNode) record.open[file] = node;
  return file;
}

template <typename Write>
ssize_t WriteRecorded(int file, const void* bytes, const Write& write) {
  const auto node = Current()->open.find(file);
  if (node == Current()->open.end()) return write();
  if (!MayGoOn(FileCall::Kind::kWrite)) return -1;
  const ssize_t written = write();
  if (written <= 0) return written;
  const off_t end = lseek(file, 0, SEEK_CUR);
  Done({.kind = FileCall::Kind::kWrite,
        .node = node->second,
        .offset = end - written,
        .bytes = std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(written))});
  return written;
}

int SyncRecorded(int file, int (*real)(int)) {
  const auto node = Current()->open.find(file);
  if (node == Current()->open.end()) return real(file);
  if (!MayGoOn(FileCall::Kind::kSync)) {
    const int error = errno;
    if (!Current()->frozen) Done({.kind = FileCall::Kind::kFailedSync, .node = node->second});
    errno = error;
    return -1;
  }
  const int done = real(file);
  if (done == 0) Done({.kind = FileCall::Kind::kSync, .node = node->second});
  return done;
}

template <typename Remove>
int RemoveRecorded(int at, const char* path, const Remove& remove) {
  const std::optional<Place> place = Look(at, path);
  if (!place || place->node == kNoNode) return remove();
  const auto kind = Current()->disk.IsFolder(place->node) ? FileCall::Kind::kRemoveFolder
                                                          : FileCall::Kind::kUnlink;
  if (!MayGoOn(kind)) return -1;
  const int done = remove();
  if (done == 0) {
    Done({.kind = kind, .node = place->node, .folder = place->folder, .name = place->name});
  }
  return done;
}

template <typename Move>
int MoveRecorded(FileCall::Kind kind, const char* from, const char* to, const Move& move) {
  const std::optional<Place> source = Look(AT_FDCWD, from);
  const std::optional<Place> target = Look(AT_FDCWD, to);
  if (!source || !target || source->node == kNoNode) return move();
  if (!MayGoOn(kind)) return -1;
  const int done = move();
  if (done == 0) {
    Done({.kind = kind,
          .node = source->node,
          .folder = source->folder,
          .name = source->name,
          .to_folder = target->folder,
          .to_name = target->name});
  }
  return done;
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

Recorder::Recorder(const std::string& root, Fault fault) : Recorder(root, Disk::Of(root)) {
  const std::lock_guard lock(Mutex());
  Current()->fault = fault;
}

Recorder::Recorder(const std::string& root, Disk disk) {
  const std::lock_guard lock(Mutex());
  ESPALIER_CHECK(Current() == nullptr, "there is one recorder at a time");
  auto record = std::make_unique<Record>();
  record->root = root;
  record->disk = std::move(disk);
  Current() = std::move(record);
  recording = true;
}

Recorder::~Recorder() {
  const std::lock_guard lock(Mutex());
  recording = false;
  Current() = nullptr;
}

std::int64_t Recorder::Now() const {
  const std::lock_guard lock(Mutex());
  return std::ssize(Current()->calls);
}

void Recorder::Freeze() {
  const std::lock_guard lock(Mutex());
  Current()->frozen = true;
}

std::vector<FileCall> Recorder::Calls() const {
  const std::lock_guard lock(Mutex());
  return Current()->calls;
}

Disk Recorder::DiskNow() const {
  const std::lock_guard lock(Mutex());
  return Current()->disk;
}

std::string Recorder::Compare() const {
  const std::lock_guard lock(Mutex());
  std::map<std::string, std::string> known = Current()->disk.Files();
  std::map<std::string, std::string> there = Disk::Of(Current()->root).Files();
  const auto is_index = [](const auto& file) { return file.first.ends_with("-shm"); };
  std::erase_if(known, is_index);  // SQLite's, which is written by way of memory
  std::erase_if(there, is_index);
  for (const auto& [path, content] : known) {
    if (!there.contains(path)) return path + " is not there";
    if (there.at(path) != content) return path + " has another content";
  }
  for (const auto& [path, content] : there) {
    if (!known.contains(path)) return path + " came past the recorder";
  }
  return "";
}

}  // namespace espalier::power_cuts

// ---- The calls themselves, as the C library declares them ------------------------------------

using espalier::power_cuts::Current;
using espalier::power_cuts::Done;
using espalier::power_cuts::FileCall;
using espalier::power_cuts::Look;
using espalier::power_cuts::MayGoOn;
using espalier::power_cuts::ModeOf;
using espalier::power_cuts::MoveRecorded;
using espalier::power_cuts::Mutex;
using espalier::power_cuts::OpenRecorded;
using espalier::power_cuts::Real;
using espalier::power_cuts::recording;
using espalier::power_cuts::RemoveRecorded;
using espalier::power_cuts::SyncRecorded;
using espalier::power_cuts::WriteRecorded;

extern "C" {

#define ESPALIER_OPEN(name)                                            \
  int name(const char* path, int flags, ...) {                         \
    static auto* const real = Real<int(const char*, int, ...)>(#name); \
    va_list arguments;                                                 \
    va_start(arguments, flags);                                        \
    const mode_t mode = ModeOf(flags, arguments);                      \
    va_end(arguments);                                                 \
    const auto call = [&] { return real(path, flags, mode); };         \
    ESPALIER_UNLESS_RECORDING(call());                                 \
    return OpenRecorded(AT_FDCWD, path, flags, call);                  \
  }
ESPALIER_OPEN(open)
ESPALIER_OPEN(open64)

#define ESPALIER_OPENAT(name)                                               \
  int name(int at, const char* path, int flags, ...) {                      \
    static auto* const real = Real<int(int, const char*, int, ...)>(#name); \
    va_list arguments;                                                      \
    va_start(arguments, flags);                                             \
    const mode_t mode = ModeOf(flags, arguments);                           \
    va_end(arguments);                                                      \
    const auto call = [&] { return real(at, path, flags, mode); };          \
    ESPALIER_UNLESS_RECORDING(call());                                      \
    return OpenRecorded(at, path, flags, call);                             \
  }
ESPALIER_OPENAT(openat)
ESPALIER_OPENAT(openat64)

// The name is made by the system, so the place is only known afterwards.
#define ESPALIER_MKOSTEMPS(function)                                 \
  int function(char* path, int suffix, int flags) {                  \
    static auto* const real = Real<int(char*, int, int)>(#function); \
    ESPALIER_UNLESS_RECORDING(real(path, suffix, flags));            \
    if (!Look(AT_FDCWD, path)) return real(path, suffix, flags);     \
    if (!MayGoOn(FileCall::Kind::kCreate)) return -1;                \
    const int file = real(path, suffix, flags);                      \
    if (file < 0) return file;                                       \
    const auto place = Look(AT_FDCWD, path);                         \
    const auto node = Current()->disk.NextNode();                    \
    Done({.kind = FileCall::Kind::kCreate,                           \
          .node = node,                                              \
          .folder = place->folder,                                   \
          .name = place->name});                                     \
    Current()->open[file] = node;                                    \
    return file;                                                     \
  }
ESPALIER_MKOSTEMPS(mkostemps)
ESPALIER_MKOSTEMPS(mkostemps64)

int close(int file) {
  static auto* const real = Real<int(int)>("close");
  ESPALIER_UNLESS_RECORDING(real(file));
  Current()->open.erase(file);
  return real(file);
}

int closedir(DIR* folder) {
  static auto* const real = Real<int(DIR*)>("closedir");
  ESPALIER_UNLESS_RECORDING(real(folder));
  Current()->open.erase(dirfd(folder));
  return real(folder);
}

ssize_t write(int file, const void* bytes, size_t count) {
  static auto* const real = Real<ssize_t(int, const void*, size_t)>("write");
  ESPALIER_UNLESS_RECORDING(real(file, bytes, count));
  return WriteRecorded(file, bytes, [&] { return real(file, bytes, count); });
}

#define ESPALIER_PWRITE(name)                                                                    \
  ssize_t name(int file, const void* bytes, size_t count, off_t offset) {                        \
    static auto* const real = Real<ssize_t(int, const void*, size_t, off_t)>(#name);             \
    ESPALIER_UNLESS_RECORDING(real(file, bytes, count, offset));                                 \
    const auto node = Current()->open.find(file);                                                \
    if (node == Current()->open.end()) return real(file, bytes, count, offset);                  \
    if (!MayGoOn(FileCall::Kind::kWrite)) return -1;                                             \
    const ssize_t written = real(file, bytes, count, offset);                                    \
    if (written <= 0) return written;                                                            \
    Done({.kind = FileCall::Kind::kWrite,                                                        \
          .node = node->second,                                                                  \
          .offset = offset,                                                                      \
          .bytes =                                                                               \
              std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(written))}); \
    return written;                                                                              \
  }
ESPALIER_PWRITE(pwrite)
ESPALIER_PWRITE(pwrite64)

#define ESPALIER_FTRUNCATE(name)                                                       \
  int name(int file, off_t size) noexcept {                                            \
    static auto* const real = Real<int(int, off_t)>(#name);                            \
    ESPALIER_UNLESS_RECORDING(real(file, size));                                       \
    const auto node = Current()->open.find(file);                                      \
    if (node == Current()->open.end()) return real(file, size);                        \
    if (!MayGoOn(FileCall::Kind::kTruncate)) return -1;                                \
    const int done = real(file, size);                                                 \
    if (done == 0) {                                                                   \
      Done({.kind = FileCall::Kind::kTruncate, .node = node->second, .offset = size}); \
    }                                                                                  \
    return done;                                                                       \
  }
ESPALIER_FTRUNCATE(ftruncate)
ESPALIER_FTRUNCATE(ftruncate64)

int fsync(int file) {
  static auto* const real = Real<int(int)>("fsync");
  ESPALIER_UNLESS_RECORDING(real(file));
  return SyncRecorded(file, real);
}

int fdatasync(int file) {
  static auto* const real = Real<int(int)>("fdatasync");
  ESPALIER_UNLESS_RECORDING(real(file));
  return SyncRecorded(file, real);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = Real<int(const char*, const char*)>("rename");
  ESPALIER_UNLESS_RECORDING(real(from, to));
  return MoveRecorded(FileCall::Kind::kRename, from, to, [&] { return real(from, to); });
}

int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static auto* const real = Real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const auto call = [&] { return real(at, from, to_at, to, flags); };
  ESPALIER_UNLESS_RECORDING(call());
  if (flags != RENAME_EXCHANGE) abort();  // not done by us
  return MoveRecorded(FileCall::Kind::kExchange, from, to, call);
}

int link(const char* from, const char* to) noexcept {
  static auto* const real = Real<int(const char*, const char*)>("link");
  ESPALIER_UNLESS_RECORDING(real(from, to));
  return MoveRecorded(FileCall::Kind::kLink, from, to, [&] { return real(from, to); });
}

int unlink(const char* path) noexcept {
  static auto* const real = Real<int(const char*)>("unlink");
  ESPALIER_UNLESS_RECORDING(real(path));
  return RemoveRecorded(AT_FDCWD, path, [&] { return real(path); });
}

int rmdir(const char* path) noexcept {
  static auto* const real = Real<int(const char*)>("rmdir");
  ESPALIER_UNLESS_RECORDING(real(path));
  return RemoveRecorded(AT_FDCWD, path, [&] { return real(path); });
}

int remove(const char* path) noexcept {
  static auto* const real = Real<int(const char*)>("remove");
  ESPALIER_UNLESS_RECORDING(real(path));
  return RemoveRecorded(AT_FDCWD, path, [&] { return real(path); });
}

int unlinkat(int at, const char* path, int flags) noexcept {
  static auto* const real = Real<int(int, const char*, int)>("unlinkat");
  ESPALIER_UNLESS_RECORDING(real(at, path, flags));
  return RemoveRecorded(at, path, [&] { return real(at, path, flags); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = Real<int(const char*, mode_t)>("mkdir");
  ESPALIER_UNLESS_RECORDING(real(path, mode));
  const auto place = Look(AT_FDCWD, path);
  if (!place || place->node != espalier::power_cuts::kNoNode) return real(path, mode);
  if (!MayGoOn(FileCall::Kind::kMakeFolder)) return -1;
  const int done = real(path, mode);
  if (done == 0) {
    Done({.kind = FileCall::Kind::kMakeFolder,
          .node = Current()->disk.NextNode(),
          .folder = place->folder,
          .name = place->name});
  }
  return done;
}

// Collapses a range, which the record has no word for: as on file systems that cannot.
int fallocate(int file, int mode, off_t offset, off_t size) {
  static auto* const real = Real<int(int, int, off_t, off_t)>("fallocate");
  ESPALIER_UNLESS_RECORDING(real(file, mode, offset, size));
  if (!Current()->open.contains(file)) return real(file, mode, offset, size);
  errno = EOPNOTSUPP;
  return -1;
}

}  // extern "C"
