#include "tests/benchmarks/power_cuts/disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/private_files.h"

namespace espalier::power_cuts {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSector = 512;

bool Coin(Random& random) { return random.Below(2) == 0; }

void Put(std::string& content, std::int64_t offset, const std::string& bytes) {
  const auto at = static_cast<std::size_t>(offset);
  if (content.size() < at + bytes.size()) content.resize(at + bytes.size(), '\0');
  content.replace(at, bytes.size(), bytes);
}

}  // namespace

const char* NameOf(FileCall::Kind kind) {
  switch (kind) {
    case FileCall::Kind::kCreate:
      return "create";
    case FileCall::Kind::kWrite:
      return "write";
    case FileCall::Kind::kTruncate:
      return "truncate";
    case FileCall::Kind::kSync:
      return "sync";
    case FileCall::Kind::kRename:
      return "rename";
    case FileCall::Kind::kExchange:
      return "exchange";
    case FileCall::Kind::kLink:
      return "link";
    case FileCall::Kind::kUnlink:
      return "unlink";
    case FileCall::Kind::kMakeFolder:
      return "make_folder";
    case FileCall::Kind::kRemoveFolder:
      return "remove_folder";
    case FileCall::Kind::kFailedSync:
      return "failed_sync";
  }
  return "";
}

Disk Disk::Of(const std::string& folder) {
  Disk disk;
  disk.folders_[kRoot] = 0;
  std::map<fs::path, Node> known = {{fs::path(folder), kRoot}};
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());  // folders before what is in them
  for (const fs::path& path : paths) {
    const Node node = disk.next_++;
    known[path] = node;
    if (fs::is_directory(path)) {
      disk.folders_[node] = 0;
    } else {
      disk.files_[node].synced = TextOfFile(path.string());
    }
    disk.names_[{known.at(path.parent_path()), path.filename().string()}] = node;
  }
  disk.synced_names_ = disk.names_;
  return disk;
}

Node Disk::Find(Node folder, const std::string& name) const {
  const auto found = names_.find({folder, name});
  return found == names_.end() ? kNoNode : found->second;
}

void Disk::Do(const NameChange& change, Names& names) {
  for (const auto& [name, node] : change) {
    if (node == kNoNode) {
      names.erase(name);
    } else {
      names[name] = node;
    }
  }
}

void Disk::ChangeNames(NameChange change) {
  Do(change, names_);
  names_since_.push_back(std::move(change));
}

void Disk::Apply(const FileCall& call) {
  const Name name{call.folder, call.name};
  const Name to{call.to_folder, call.to_name};
  switch (call.kind) {
    case FileCall::Kind::kCreate:
    case FileCall::Kind::kMakeFolder:
      next_ = std::max(next_, call.node + 1);
      if (call.kind == FileCall::Kind::kCreate) {
        files_[call.node];
      } else {
        folders_[call.node] = 0;
      }
      ChangeNames({{name, call.node}});
      break;
    case FileCall::Kind::kWrite:
      files_.at(call.node).since.push_back({call.offset, call.bytes, false});
      break;
    case FileCall::Kind::kTruncate:
      files_.at(call.node).since.push_back({call.offset, "", true});
      break;
    case FileCall::Kind::kSync:
      if (IsFolder(call.node)) {
        SyncNames(call.node);
      } else {
        File& file = files_.at(call.node);
        Random random(0);
        file.synced = Content(call.node, Cut{}, random);
        file.since.clear();
      }
      break;
    case FileCall::Kind::kFailedSync:
      if (!IsFolder(call.node)) files_.at(call.node).since.clear();
      break;
    case FileCall::Kind::kRename:
      ChangeNames({{name, kNoNode}, {to, call.node}});
      break;
    case FileCall::Kind::kExchange:
      ChangeNames({{name, Find(to.folder, to.name)}, {to, call.node}});
      break;
    case FileCall::Kind::kLink:
      ChangeNames({{to, call.node}});
      break;
    case FileCall::Kind::kUnlink:
    case FileCall::Kind::kRemoveFolder:
      ChangeNames({{name, kNoNode}});
      break;
  }
}

// A rename is synced with either of its folders, and with it what happened to its names before.
void Disk::SyncNames(Node folder) {
  std::set<Name> with;
  std::vector<bool> synced(names_since_.size());
  for (std::size_t i = names_since_.size(); i-- > 0;) {
    for (const auto& [name, node] : names_since_[i]) {
      synced[i] = synced[i] || name.folder == folder || with.contains(name);
    }
    if (!synced[i]) continue;
    for (const auto& [name, node] : names_since_[i]) with.insert(name);
  }
  std::vector<NameChange> left;
  for (std::size_t i = 0; i < names_since_.size(); ++i) {
    if (synced[i]) {
      Do(names_since_[i], synced_names_);
    } else {
      left.push_back(names_since_[i]);
    }
  }
  names_since_ = std::move(left);
}

Disk::Names Disk::NamesAfter(const Cut& cut, Random& random) const {
  if (cut.names == Cut::Kept::kAll) return names_;
  Names names = synced_names_;
  std::set<Name> left_out;
  for (const NameChange& change : names_since_) {
    bool kept = cut.names == Cut::Kept::kSome && Coin(random);
    for (const auto& [name, node] : change) kept = kept && !left_out.contains(name);
    if (kept) {
      Do(change, names);
      continue;
    }
    for (const auto& [name, node] : change) left_out.insert(name);
  }
  return names;
}

void Disk::Keep(const Change& change, const Cut& cut, Random& random, std::string& content) {
  const auto size = static_cast<std::int64_t>(change.bytes.size());
  bool all = cut.bytes == Cut::Kept::kAll;
  const bool some = cut.bytes == Cut::Kept::kSome && !Coin(random);
  if (cut.bytes == Cut::Kept::kSome && !some) all = Coin(random);
  if (change.truncates) {
    if (all || some) content.resize(static_cast<std::size_t>(change.offset), '\0');
    return;
  }
  if (all) Put(content, change.offset, change.bytes);
  if (all) return;
  for (std::int64_t at = 0; some && at < size;) {
    const std::int64_t end =
        std::min(size, ((change.offset + at) / kSector + 1) * kSector - change.offset);
    if (Coin(random)) {
      Put(content, change.offset + at,
          change.bytes.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at)));
    }
    at = end;
  }
  const auto whole = static_cast<std::size_t>(change.offset + size);
  if (cut.zeros && content.size() < whole) content.resize(whole, '\0');
}

std::string Disk::Content(Node node, const Cut& cut, Random& random) const {
  const File& file = files_.at(node);
  std::string content = file.synced;
  for (const Change& change : file.since) Keep(change, cut, random, content);
  const FileCall* half = cut.under_way;
  if (half != nullptr && half->kind == FileCall::Kind::kWrite && half->node == node &&
      half->bytes.size() > 1) {
    Put(content, half->offset, half->bytes.substr(0, 1 + random.Below(half->bytes.size() - 1)));
  }
  return content;
}

std::map<std::string, std::string> Disk::After(const Cut& cut) const {
  Random random(cut.seed);
  const Names names = NamesAfter(cut, random);
  std::map<Node, std::string> contents;  // a file may have two names
  std::map<std::string, std::string> files;
  std::vector<std::pair<Node, std::string>> folders = {{kRoot, ""}};
  while (!folders.empty()) {
    const auto [folder, path] = folders.back();
    folders.pop_back();
    for (auto at = names.lower_bound({folder, ""}); at != names.end() && at->first.folder == folder;
         ++at) {
      const std::string below = path + at->first.name;
      if (IsFolder(at->second)) {
        files[below + "/"];
        folders.emplace_back(at->second, below + "/");
        continue;
      }
      auto [content, fresh] = contents.try_emplace(at->second);
      if (fresh) content->second = Content(at->second, cut, random);
      files[below] = content->second;
    }
  }
  return files;
}

std::map<std::string, std::string> Disk::Files() const { return After(Cut{}); }

void WriteFolder(const std::string& folder, const std::map<std::string, std::string>& files) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [path, content] : files) {  // folders come before what is in them
    const fs::path whole = fs::path(folder) / path;
    if (path.ends_with('/')) {
      fs::create_directory(whole.parent_path());
      fs::permissions(whole.parent_path(), fs::perms::owner_all);
      continue;
    }
    std::ofstream(whole, std::ios::binary) << content;
    fs::permissions(whole, fs::perms::owner_read | fs::perms::owner_write);
  }
}

}  // namespace espalier::power_cuts
