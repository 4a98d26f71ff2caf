#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace espalier::power_cuts {

// A file or a folder, whatever names it has. Numbers are never used again.
using Node = int;
inline constexpr Node kRoot = 0;
inline constexpr Node kNoNode = -1;

// One call of the system by which a program changes what is on a disk, or waits for it.
struct FileCall {
  enum class Kind {
    kCreate,
    kWrite,
    kTruncate,
    kSync,  // of a file's content, or of the names in a folder
    kRename,
    kExchange,  // of two names
    kLink,
    kUnlink,
    kMakeFolder,
    kRemoveFolder,
    kFailedSync,  // the last one: no record without faults has it
  };
  Kind kind = Kind::kSync;
  Node node = kNoNode;
  Node folder = kNoNode;  // the name in question, of the kinds that change names
  std::string name{};
  Node to_folder = kNoNode;  // of kRename, kExchange and kLink
  std::string to_name{};
  std::int64_t offset = 0;  // of kWrite; of kTruncate: the size
  std::string bytes{};
};

const char* NameOf(FileCall::Kind kind);

// What a power cut leaves of what was not synced.
struct Cut {
  enum class Kept { kNothing, kAll, kSome };
  Kept names = Kept::kAll;  // created, renamed and removed
  Kept bytes = Kept::kAll;  // kSome: by sectors
  // Where bytes are not kept, the file is as long as with them all the same, and has zeros.
  bool zeros = false;
  // The call under way when the power was cut: of a write, a part is on the disk.
  const FileCall* under_way = nullptr;
  std::uint64_t seed = 0;
};

// What is below one folder of a disk, once as programs see it and once as it would be after a loss
// of power. What POSIX promises is kept, and no more: what was written is safe when the file was
// synced, and a name when its folder was; until then each write and each name may be on the disk or
// not, in any order, and a write may be there by halves. A rename is there as a whole or not at
// all, as journals of file systems have it, and a name follows what happened to it before. What a
// sync that failed was to bring to the disk is never there, though programs see it and later syncs
// succeed: Linux counts it as written.
class Disk {
 public:
  // What is in the folder now, all of it synced.
  static Disk Of(const std::string& folder);

  void Apply(const FileCall& call);

  // As programs see it; kNoNode: there is nothing.
  Node Find(Node folder, const std::string& name) const;
  bool IsFolder(Node node) const { return folders_.contains(node); }
  Node NextNode() const { return next_; }
  std::map<std::string, std::string> Files() const;  // by path: what programs read

  // The files by path, and the folders with a '/' at the end, after a loss of power.
  std::map<std::string, std::string> After(const Cut& cut) const;

 private:
  struct Change {  // of a file's content
    std::int64_t offset = 0;
    std::string bytes;
    bool truncates = false;
  };
  struct File {
    std::string synced;
    std::vector<Change> since;
  };
  struct Name {
    Node folder = kNoNode;
    std::string name;
    auto operator<=>(const Name&) const = default;
  };
  // What one call makes of some names; kNoNode: they go.
  using NameChange = std::vector<std::pair<Name, Node>>;
  using Names = std::map<Name, Node>;

  void ChangeNames(NameChange change);
  static void Do(const NameChange& change, Names& names);
  void SyncNames(Node folder);
  std::string Content(Node node, const Cut& cut, Random& random) const;
  static void Keep(const Change& change, const Cut& cut, Random& random, std::string& content);
  Names NamesAfter(const Cut& cut, Random& random) const;

  std::map<Node, File> files_;
  std::map<Node, int> folders_;
  Names synced_names_;
  Names names_;
  std::vector<NameChange> names_since_;
  Node next_ = 1;
};

// Makes the folder hold just that.
void WriteFolder(const std::string& folder, const std::map<std::string, std::string>& files);

}  // namespace espalier::power_cuts
