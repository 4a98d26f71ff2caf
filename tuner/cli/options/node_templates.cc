#include "tuner/cli/options/node_templates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json/parse_json.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/core/state/step.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostTemplates = 16;
constexpr std::size_t kLongestName = 20;
constexpr std::size_t kLongestText = 200;
constexpr double kLongest_s = 30 * 86400;
constexpr double kMostPreemptions = 3600;

bool IsName(const std::string& name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= kLongestName && lower(name.front()) &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), [&](char c) {
           return lower(c) || (c >= '0' && c <= '9') || c == '-';
         });
}

// One entry. What is wrong first is kept; the rest is read as if nothing was.
class TemplateReader {
 public:
  explicit TemplateReader(const Json& json) : json_(json) {}

  absl::StatusOr<GivenTemplate> Read() {
    if (!json_.is_object()) return absl::InvalidArgumentError("must be an object");
    for (const auto& [key, value] : json_.items()) {
      if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
      return absl::InvalidArgumentError(
          fmt::format("unknown key \"{}\"; known are {}", key, fmt::join(kKeys, ", ")));
    }
    GivenTemplate given;
    NodeTemplate& node = given.node;
    node.name = Text("name");
    if (!IsName(node.name)) {
      Wrong("name", fmt::format("must be lower-case letters, digits and hyphens, beginning with a "
                                "letter and at most {}",
                                kLongestName));
    }
    given.gpus = json_.contains("gpus");
    if (given.gpus == json_.contains("slots")) {
      Wrong("slots", "give either \"slots\" or \"gpus\", as many as a node has");
    }
    node.slots = Whole(given.gpus ? "gpus" : "slots", 1, kMaxNodeSlots, 1);
    node.gpu_type = Text("gpu_type");
    Need("price_per_hour", "what a node costs an hour, 0 where it costs nothing");
    node.price_per_hour = Number("price_per_hour", std::numeric_limits<double>::max(), 0);
    node.spot = Flag("spot");
    node.preemptions_per_hour = Number("preemptions_per_hour", kMostPreemptions, 0);
    if (json_.contains("start_s")) given.start_s = Number("start_s", kLongest_s, 0);
    node.queue_s = Number("queue_s", kLongest_s, 0);
    Need("max_nodes", fmt::format("1 to {}", kMaxEngineNodes));
    node.max_nodes = Whole("max_nodes", 1, kMaxEngineNodes, 1);
    node.min_nodes = Whole("min_nodes", 0, node.max_nodes, 0);
    ReadOptions(given.options);
    if (!wrong_.empty()) return absl::InvalidArgumentError(wrong_);
    return given;
  }

 private:
  static constexpr std::string_view kKeys[] = {"name",
                                               "slots",
                                               "gpus",
                                               "gpu_type",
                                               "price_per_hour",
                                               "spot",
                                               "preemptions_per_hour",
                                               "start_s",
                                               "queue_s",
                                               "min_nodes",
                                               "max_nodes",
                                               "options"};

  void Wrong(const std::string& key, const std::string& what) {
    if (!wrong_.empty()) return;
    wrong_ = fmt::format("\"{}\": {}", key, what);
    if (json_.contains(key)) wrong_ += ", got " + Shown(json_[key]);
  }
  static std::string Shown(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kLongestText);
  }

  void Need(const std::string& key, const std::string& what) {
    if (!json_.contains(key)) Wrong(key, "is needed: " + what);
  }

  std::string Text(const std::string& key) {
    if (!json_.contains(key)) return "";
    if (json_[key].is_string() && json_[key].get<std::string>().size() <= kLongestText) {
      return json_[key].get<std::string>();
    }
    Wrong(key, fmt::format("must be a text of at most {} bytes", kLongestText));
    return "";
  }

  bool Flag(const std::string& key) {
    if (!json_.contains(key)) return false;
    if (!json_[key].is_boolean()) Wrong(key, "must be true or false");
    return json_[key] == true;
  }

  double Number(const std::string& key, double most, double otherwise) {
    if (!json_.contains(key)) return otherwise;
    const double value = json_[key].is_number() ? json_[key].get<double>() : -1;
    if (value >= 0 && value <= most) return value;
    Wrong(key, most < std::numeric_limits<double>::max() ? fmt::format("must be 0 to {}", most)
                                                         : "must be 0 or more");
    return otherwise;
  }

  int Whole(const std::string& key, int least, int most, int otherwise) {
    if (!json_.contains(key)) return otherwise;
    const double value = json_[key].is_number() ? json_[key].get<double>() : -1;
    if (value >= least && value <= most && value == std::floor(value)) {
      return static_cast<int>(value);
    }
    Wrong(key, fmt::format("must be a whole number from {} to {}", least, most));
    return otherwise;
  }

  // As words of --engine-option: texts and numbers, or lists of them.
  void ReadOptions(std::vector<std::string>& options) {
    if (!json_.contains("options")) return;
    const Json& given = json_["options"];
    if (!given.is_object()) return Wrong("options", "must be an object");
    for (const auto& [name, value] : given.items()) {
      for (const Json& each : value.is_array() ? value : Json::array({value})) {
        if (!each.is_string() && !each.is_number()) {
          return Wrong("options",
                       fmt::format("\"{}\" must be a text, a number or a list of them", name));
        }
        options.push_back(name + "=" + (each.is_string() ? each.get<std::string>() : each.dump()));
      }
    }
  }

  const Json& json_;
  std::string wrong_;
};

}  // namespace

absl::StatusOr<std::vector<GivenTemplate>> ParseNodeTemplates(const std::string& json) {
  ESPALIER_RETURN_IF_ERROR(CheckJsonDepth(json));
  const Json list = ParseJson(json);
  if (list.is_discarded()) return absl::InvalidArgumentError("is not JSON");
  if (!list.is_array() || list.empty() || list.size() > kMostTemplates) {
    return absl::InvalidArgumentError(
        fmt::format("must be a list of 1 to {} templates", kMostTemplates));
  }
  std::vector<GivenTemplate> templates;
  std::set<std::string> names;
  int most = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    absl::StatusOr<GivenTemplate> given = TemplateReader(list[i]).Read();
    const auto named = list[i].is_object() ? list[i].find("name") : list[i].end();
    const std::string which = list[i].is_object() && named != list[i].end() && named->is_string()
                                  ? fmt::format("template \"{}\"", named->get<std::string>())
                                  : fmt::format("template {} of the list", i + 1);
    if (!given.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}", which, std::string(given.status().message())));
    }
    if (!names.insert(given->node.name).second) {
      return absl::InvalidArgumentError(which + " is there twice: each needs a name of its own");
    }
    most += given->node.max_nodes;
    templates.push_back(*std::move(given));
  }
  if (most <= kMaxEngineNodes) return templates;
  return absl::InvalidArgumentError(fmt::format(
      "\"max_nodes\" of all templates are {} together: must be at most {}", most, kMaxEngineNodes));
}

absl::StatusOr<std::vector<GivenTemplate>> ReadNodeTemplates(const std::string& path) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<std::vector<GivenTemplate>> templates = ParseNodeTemplates(text);
  if (templates.ok()) return templates;
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", path, std::string(templates.status().message())));
}

}  // namespace espalier
