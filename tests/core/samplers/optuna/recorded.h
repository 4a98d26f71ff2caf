#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace espalier::testing {

// What another program has computed: lines of a name and numbers.
class Recorded {
 public:
  explicit Recorded(const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("#")) continue;
      std::istringstream words(line);
      std::string name;
      words >> name;
      std::vector<double>& numbers = numbers_[name];
      for (std::string word; words >> word;) numbers.push_back(std::stod(word));  // takes "inf"
    }
  }

  const std::vector<double>& operator[](const std::string& name) const {
    const auto at = numbers_.find(name);
    if (at == numbers_.end()) throw std::out_of_range("nothing recorded as " + name);
    return at->second;
  }

 private:
  std::map<std::string, std::vector<double>> numbers_;
};

}  // namespace espalier::testing
