#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// What a line of JSON, as programs log it, says of a metric.
struct MetricLine {
  bool is_object = false;  // else it is nothing of that kind
  std::optional<double> value;
  std::optional<std::int64_t> step;       // a whole number from 0 to 2^53
  std::map<std::string, double> figures;  // beside the value, by key
  std::vector<std::string> names;         // where it has no value: its keys
  std::string no_number;  // what it has in place of the value, as JSON; empty: nothing
};

// Python's NaN and Infinity are numbers, and so are texts that are one: "nan", "0.5". A key is a
// member's name or, where there is none of that name, a path with dots: "eval.loss".
MetricLine ReadMetricLine(std::string_view line, std::string_view value, std::string_view step,
                          const std::vector<std::string>& figures = {});

}  // namespace espalier
