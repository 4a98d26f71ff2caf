#include "trial_runner/agent/file_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/folder_entries.h"
#include "base/protocol.h"

namespace espalier {
namespace {

constexpr std::int64_t kPerLook_bytes = std::int64_t{4} << 20;
constexpr std::int64_t kAtEnd_bytes = std::int64_t{256} << 20;
constexpr int kLooksPerWalk = 2;  // through the folder: at 200 ms a look, within a second
constexpr std::string_view kEventFile = ".tfevents.";
constexpr std::size_t kMostEntriesShown = 8;

// Opens what is a file and, if it is a pipe or a device, nothing: these would block.
FileDescriptor OpenFile(const std::string& path, struct stat& status) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

std::string NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : FolderEntries(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
  }
  std::ranges::sort(names);
  const bool more = names.size() > kMostEntriesShown;
  if (more) names.resize(kMostEntriesShown);
  return absl::StrCat(absl::StrJoin(names, ", "), more ? " and more" : "");
}

}  // namespace

FileWatch::FileWatch(const v1::StartReplica& start)
    : metric_(start.file_metric()),
      records_(metric_),
      has_values_(start.environment().contains(kLastStepVariable)) {}

std::unique_ptr<FileWatch> FileWatch::Of(const v1::StartReplica& start) {
  if (!start.has_file_metric() || start.joins() > 0) return nullptr;
  std::unique_ptr<FileWatch> watch(new FileWatch(start));
  watch->FindFiles();
  for (auto& [path, file] : watch->files_) {
    struct stat status {};
    FileDescriptor open = OpenFile(path, status);
    if (!open.open()) continue;
    file.at = status.st_size;
    file.inode = status.st_ino;
    if (!watch->of_events()) file.open = std::move(open);
  }
  return watch;
}

std::unique_ptr<FileWatch> FileWatch::Of(const v1::HandedReplica& handed) {
  if (!handed.has_files()) return nullptr;
  std::unique_ptr<FileWatch> watch(new FileWatch(handed.start()));
  for (const v1::HandedFile& each : handed.files().files()) {
    File& file = watch->files_[each.path()];
    file.at = each.at();
    file.inode = static_cast<ino_t>(each.inode());
  }
  watch->records_.GoOn(handed.files().found(), handed.files().counted());
  watch->program_speaks_ = handed.files().program_speaks();
  return watch;
}

v1::HandedFiles FileWatch::HandOver() const {
  v1::HandedFiles handed;
  for (const auto& [path, file] : files_) {
    v1::HandedFile& each = *handed.add_files();
    each.set_path(path);
    each.set_at(file.at);
    each.set_inode(static_cast<std::int64_t>(file.inode));
  }
  handed.set_counted(records_.counted());
  handed.set_found(records_.found());
  handed.set_program_speaks(program_speaks_);
  return handed;
}

std::vector<v1::ReplicaMessage> FileWatch::Look() {
  std::vector<v1::ReplicaMessage> messages;
  if (looks_++ % kLooksPerWalk == 0) FindFiles();
  Read(kPerLook_bytes, /*ends=*/false, messages);
  return messages;
}

std::vector<v1::ReplicaMessage> FileWatch::End(bool well) {
  std::vector<v1::ReplicaMessage> messages;
  FindFiles();
  Read(kAtEnd_bytes, /*ends=*/true, messages);
  if (well && !records_.found() && !has_values_ && !program_speaks_) {
    messages.emplace_back().mutable_finished()->set_failure(WhyNone());
  }
  return messages;
}

void FileWatch::FindFiles() {
  if (!of_events()) {
    files_[metric_.path()];
    return;
  }
  int entries = 0;
  FindEventFiles(metric_.path(), 0, entries);
}

void FileWatch::FindEventFiles(const std::string& folder, int depth, int& entries) {
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return;
  std::vector<std::string> folders;
  while (const dirent* entry = readdir(open)) {
    if (++entries > kMaxFolderEntries) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string path = absl::StrCat(folder, "/", std::string(name));
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN) {
      struct stat status {};
      if (lstat(path.c_str(), &status) != 0) continue;
      type = S_ISDIR(status.st_mode) ? DT_DIR : DT_REG;
    }
    if (type == DT_DIR) {
      folders.push_back(std::move(path));
    } else if (name.find(kEventFile) != name.npos && files_.size() < kMaxEventFiles) {
      files_[path];
    }
  }
  closedir(open);
  if (depth >= kMaxFolderDepth) return;
  for (const std::string& each : folders) FindEventFiles(each, depth + 1, entries);
}

void FileWatch::Read(std::int64_t most, bool ends, std::vector<v1::ReplicaMessage>& messages) {
  std::vector<v1::Report> reports;
  for (auto& [path, file] : files_) ReadFile(path, file, ends, most, reports);
  if (ends && most <= 0) {
    spdlog::warn("{}: a program that has ended has left more than {} MiB there that were not read",
                 metric_.path(), kAtEnd_bytes >> 20);
  }
  for (v1::Report& report : reports) *messages.emplace_back().mutable_report() = std::move(report);
}

void FileWatch::ReadFile(const std::string& path, File& file, bool ends, std::int64_t& most,
                         std::vector<v1::Report>& reports) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    if (file.open.open()) ReadOpen(file.open.get(), file, ends, most, reports);
    return;
  }
  const bool other = file.inode != 0 && status.st_ino != file.inode;
  if (other) {
    // It was renamed, and another one has its name: what is left of it comes first.
    if (file.open.open()) ReadOpen(file.open.get(), file, /*ends=*/true, most, reports);
    if (most <= 0) return;
  }
  // It was written anew.
  if (other || status.st_size < file.at) file = File();
  if (status.st_size == file.at && !ends) return;
  if (!file.open.open()) {
    file.open = OpenFile(path, status);
    if (!file.open.open()) return;
    file.inode = status.st_ino;
  }
  ReadOpen(file.open.get(), file, ends, most, reports);
  if (of_events()) file.open = {};
}

void FileWatch::ReadOpen(int descriptor, File& file, bool ends, std::int64_t& most,
                         std::vector<v1::Report>& reports) {
  std::string piece;
  while (most > 0) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0 || status.st_size <= file.at) return;
    const auto left = static_cast<std::size_t>(status.st_size - file.at);
    piece.resize(std::min(left, kMaxRecord_bytes));
    const ssize_t got = pread(descriptor, piece.data(), piece.size(), file.at);
    if (got <= 0) return;
    piece.resize(static_cast<std::size_t>(got));
    const bool last = ends && piece.size() == left;
    const std::size_t done = of_events() ? records_.TakeEvents(piece, left, reports)
                                         : records_.TakeLines(piece, last, reports);
    if (done == 0) return;
    file.at += static_cast<std::int64_t>(done);
    most -= static_cast<std::int64_t>(piece.size());
  }
}

std::string FileWatch::WhyNone() const {
  std::string why = "it ended, and nothing that it wrote has a value by ";
  absl::StrAppend(&why, of_events() ? "\"from_tensorboard\"" : "\"from_file\"", ": \"",
                  of_events() ? metric_.tag() : metric_.value(), "\"; ");
  const std::string& path = metric_.path();
  const std::string what = records_.WhatElse();
  if (!what.empty()) return absl::StrCat(why, "in ", path, " ", what);
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    if (of_events() ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode)) {
      return absl::StrCat(why, path,
                          of_events() ? " has no scalar in files of events" : " has nothing new");
    }
    return absl::StrCat(why, path, of_events() ? " is no folder" : " is no file");
  }
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::string names = NamesIn(folder);
  return absl::StrCat(why, "there is no ", path,
                      names.empty() ? "" : absl::StrCat("; in ", folder, " there is ", names));
}

}  // namespace espalier
