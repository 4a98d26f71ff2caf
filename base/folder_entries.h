#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace espalier {

// What is in a folder, without its subfolders' content, in no order. `error` says why reading it
// ended early, with what had been found until then; a folder that is not there is such an error.
// Unlike the standard iterators, which have no error code for a disk that fails below them, it
// throws nothing, and what the caller adds or removes meanwhile does not matter.
std::vector<std::filesystem::directory_entry> FolderEntries(const std::filesystem::path& folder,
                                                            std::error_code& error);

// The same with all that is below it: a folder comes before what is in it. Symbolic links are not
// followed.
std::vector<std::filesystem::directory_entry> EntriesBelow(const std::filesystem::path& folder,
                                                           std::error_code& error);

}  // namespace espalier
