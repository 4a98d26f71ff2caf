#pragma once

#include <string>
#include <vector>

namespace espalier {

struct Outcome {
  int exit_code = -1;  // -1: ended by a signal
  std::string output;
  std::string errors;
};

// Runs the real executable to its end, in `directory`, and returns what came of it.
Outcome RunTuner(const std::vector<std::string>& arguments, const std::string& directory);
// The same, where nobody reads its output any more, and no signal says so.
Outcome RunTunerUnread(const std::vector<std::string>& arguments, const std::string& directory);

// A directory that is removed with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file in it; returns its path.
  std::string Write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace espalier
