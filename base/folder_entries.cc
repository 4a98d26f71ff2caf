#include "base/folder_entries.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

template <typename Iterator>
std::vector<fs::directory_entry> Read(const fs::path& folder, std::error_code& error) {
  std::vector<fs::directory_entry> entries;
  for (Iterator it(folder, error); !error && it != Iterator(); it.increment(error)) {
    entries.push_back(*it);
  }
  return entries;
}

}  // namespace

std::vector<fs::directory_entry> FolderEntries(const fs::path& folder, std::error_code& error) {
  return Read<fs::directory_iterator>(folder, error);
}

std::vector<fs::directory_entry> EntriesBelow(const fs::path& folder, std::error_code& error) {
  return Read<fs::recursive_directory_iterator>(folder, error);
}

}  // namespace espalier
