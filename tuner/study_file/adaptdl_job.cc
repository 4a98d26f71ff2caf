#include "tuner/study_file/adaptdl_job.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json/command_words.h"
#include "base/near_name.h"
#include "base/random.h"
#include "search_spaces/json_text.h"
#include "tuner/study_file/wording.h"
#include "tuner/study_file/yaml_text.h"

namespace espalier {
namespace {

using search_spaces_json::Json;
using Environment = std::map<std::string, std::string>;

constexpr char kApiGroup[] = "adaptdl.petuum.com/";
constexpr char kKind[] = "AdaptDLJob";
constexpr char kGpu[] = "nvidia.com/gpu";
// Of a generated name, as Kubernetes makes them: no vowels, so no words.
constexpr std::string_view kSuffixLetters = "bcdfghjklmnpqrstvwxz2456789";
constexpr int kSuffixLength = 5;
// Of a job's words and variables together, as Linux takes them of one program: each variable may
// repeat those before it, so that a few lines could ask for any length.
constexpr std::size_t kMostExpanded = 2 << 20;

std::string Shown(const YAML::Node& node) {
  if (!node.IsDefined() || node.IsNull()) return "nothing";
  if (node.IsScalar()) return search_spaces_json::Quote(Json(node.Scalar()));
  return node.IsSequence() ? "a list" : "an object";
}

std::string GeneratedName(const std::string& prefix) {
  Random random(std::random_device{}());
  std::string name = prefix;
  for (int i = 0; i < kSuffixLength; ++i) {
    name += kSuffixLetters[random.Below(kSuffixLetters.size())];
  }
  return name;
}

// As Kubernetes replaces $(NAME); $$ stands for $, and a name that is not known stays as it is.
// Nothing where that takes more than `room`, of which it takes its bytes.
std::optional<std::string> Expand(const std::string& text, const Environment& known,
                                  std::size_t& room) {
  std::string expanded;
  const std::size_t last = text.find_last_of(')');
  for (std::size_t at = 0; at < text.size() && expanded.size() <= room; ++at) {
    if (text[at] == '$' && at + 1 < text.size() && text[at + 1] == '$') {
      ++at;
    } else if (text[at] == '$' && at + 1 < text.size() && text[at + 1] == '(' &&
               last != std::string::npos && at < last) {
      const std::size_t end = text.find(')', at);
      const auto found = known.find(text.substr(at + 2, end - at - 2));
      expanded += found == known.end() ? text.substr(at, end + 1 - at) : found->second;
      at = end;
      continue;
    }
    expanded += text[at];
  }
  if (expanded.size() > room) return std::nullopt;
  room -= expanded.size();
  return expanded;
}

// How many documents there are, two at the most: the library takes some texts, such as ",a", for
// documents without end.
class Documents : public YAML::EventHandler {
 public:
  static int CountOf(const std::string& yaml) {
    std::istringstream text(yaml);
    YAML::Parser parser(text);
    Documents documents;
    while (documents.count_ < 2 && parser.HandleNextDocument(documents)) {
    }
    return documents.count_;
  }

  void OnDocumentStart(const YAML::Mark&) override { ++count_; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int count_ = 0;
};

class JobReader {
 public:
  explicit JobReader(std::string label) : label_(std::move(label)) {}

  absl::StatusOr<AdaptDLJob> Read(const YAML::Node& job);

 private:
  absl::Status Needs(const std::string& path, const std::string& what,
                     const YAML::Node& got) const {
    return absl::InvalidArgumentError(
        absl::StrCat(label_, ": ", path, ": needs ", what, ", got ", Shown(got)));
  }
  absl::StatusOr<YAML::Node> Object(const YAML::Node& parent, const std::string& path,
                                    const std::string& key) const;
  absl::StatusOr<std::string> Expanded(const YAML::Node& text, const std::string& path);
  absl::StatusOr<std::vector<std::string>> Words(const YAML::Node& words, const std::string& path);
  // Notes those keys that are not among `used`.
  void NoteUnused(const YAML::Node& object, const std::string& path,
                  std::span<const std::string_view> used);
  absl::Status Name(const YAML::Node& job);
  absl::Status Replicas(const YAML::Node& spec);
  absl::StatusOr<std::int64_t> Count(const YAML::Node& spec, const char* key,
                                     std::int64_t otherwise) const;
  absl::Status Container(const YAML::Node& pod, const std::string& path);
  absl::Status Variables(const YAML::Node& list, const std::string& path);
  absl::Status Resources(const YAML::Node& resources, const std::string& path);

  const std::string label_;
  Json study_ = {
      {"metric", false}, {"sampler", "random"}, {"trials", 1}, {"batch_mode", "adaptive"}};
  Environment environment_;
  std::size_t room_ = kMostExpanded;
  std::vector<std::string> unused_;
};

absl::StatusOr<YAML::Node> JobReader::Object(const YAML::Node& parent, const std::string& path,
                                             const std::string& key) const {
  const YAML::Node value = parent[key];
  if (value.IsDefined() && value.IsMap()) return value;
  return Needs(absl::StrCat(path, key), "an object", value);
}

absl::StatusOr<std::string> JobReader::Expanded(const YAML::Node& text, const std::string& path) {
  std::optional<std::string> expanded = Expand(text.Scalar(), environment_, room_);
  if (expanded) return *std::move(expanded);
  return absl::InvalidArgumentError(
      absl::StrCat(label_, ": ", path, ": needs at most ", kMostExpanded,
                   " bytes in all words and variables, each $(NAME) replaced, got more"));
}

absl::StatusOr<std::vector<std::string>> JobReader::Words(const YAML::Node& words,
                                                          const std::string& path) {
  std::vector<std::string> texts;
  if (!words.IsDefined() || words.IsNull()) return texts;
  if (!words.IsSequence()) return Needs(path, "a list of words", words);
  for (const YAML::Node& word : words) {
    if (!word.IsScalar()) return Needs(path, "a list of words", word);
    ESPALIER_ASSIGN_OR_RETURN(texts.emplace_back(), Expanded(word, path));
  }
  return texts;
}

void JobReader::NoteUnused(const YAML::Node& object, const std::string& path,
                           std::span<const std::string_view> used) {
  for (const auto& entry : object) {
    const std::string key = entry.first.Scalar();
    if (std::find(used.begin(), used.end(), key) == used.end()) {
      unused_.push_back(absl::StrCat(path, key));
    }
  }
}

absl::Status JobReader::Name(const YAML::Node& job) {
  ESPALIER_ASSIGN_OR_RETURN(const YAML::Node metadata, Object(job, "", "metadata"));
  const YAML::Node name = metadata["name"];
  const YAML::Node prefix = metadata["generateName"];
  if (name.IsDefined() && name.IsScalar()) {
    study_["name"] = name.Scalar();
  } else if (prefix.IsDefined() && prefix.IsScalar()) {
    study_["name"] = GeneratedName(prefix.Scalar());
  } else {
    return Needs("metadata.name", "a name, or generateName its beginning", name);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> JobReader::Count(const YAML::Node& spec, const char* key,
                                              std::int64_t otherwise) const {
  const YAML::Node value = spec[key];
  if (!value.IsDefined() || value.IsNull()) return otherwise;
  std::int64_t count = -1;
  if (!value.IsScalar() || !YAML::convert<std::int64_t>::decode(value, count) || count < 0) {
    return Needs(absl::StrCat("spec.", key), "a count of 0 or more", value);
  }
  return count;
}

absl::Status JobReader::Replicas(const YAML::Node& spec) {
  ESPALIER_ASSIGN_OR_RETURN(std::int64_t least, Count(spec, "minReplicas", 0));
  ESPALIER_ASSIGN_OR_RETURN(std::int64_t most, Count(spec, "maxReplicas", 0));
  const YAML::Node preemptible = spec["preemptible"];
  bool elastic = true;
  if (preemptible.IsDefined() && !YAML::convert<bool>::decode(preemptible, elastic)) {
    return Needs("spec.preemptible", "true or false", preemptible);
  }
  least = std::max<std::int64_t>(least, 1);  // a job of none waits, and so does a trial
  if (!elastic) most = least;
  if (most > 0 && most < least) {
    return Needs("spec.maxReplicas", absl::StrCat("at least minReplicas, ", least),
                 spec["maxReplicas"]);
  }
  study_["slots"] = {{"min", least}};
  if (most > 0) study_["slots"]["max"] = most;
  return absl::OkStatus();
}

absl::Status JobReader::Variables(const YAML::Node& list, const std::string& path) {
  if (!list.IsDefined() || list.IsNull()) return absl::OkStatus();
  if (!list.IsSequence()) return Needs(path, "a list of {name, value}", list);
  for (const YAML::Node& entry : list) {
    if (!entry.IsMap() || !entry["name"].IsDefined() || !entry["name"].IsScalar()) {
      return Needs(path, "a list of {name, value}", entry);
    }
    const std::string name = entry["name"].Scalar();
    if (entry["valueFrom"].IsDefined()) {
      return Needs(absl::StrCat(path, ".", name),
                   "a value: a pool has no secrets, config maps or fields of pods to take it from",
                   entry["valueFrom"]);
    }
    const YAML::Node value = entry["value"];
    std::string text;
    if (value.IsDefined() && value.IsScalar()) {
      ESPALIER_ASSIGN_OR_RETURN(text, Expanded(value, absl::StrCat(path, ".", name)));
    }
    environment_[name] = std::move(text);
  }
  study_["env"] = environment_;
  return absl::OkStatus();
}

absl::Status JobReader::Resources(const YAML::Node& resources, const std::string& path) {
  if (!resources.IsDefined() || !resources.IsMap()) return absl::OkStatus();
  for (const auto& group : resources) {
    if (!group.second.IsMap()) continue;
    for (const auto& entry : group.second) {
      const std::string name = entry.first.Scalar();
      const std::string at = absl::StrCat(path, ".", group.first.Scalar(), ".", name);
      if (name != kGpu) {
        unused_.push_back(at);
      } else if (entry.second.as<std::string>("") != "0" &&
                 entry.second.as<std::string>("") != "1") {
        return Needs(at, "0 or 1: a replica trains on one slot, so give spec.minReplicas instead",
                     entry.second);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status JobReader::Container(const YAML::Node& pod, const std::string& path) {
  const YAML::Node containers = pod["containers"];
  const std::string list = path + "containers";
  if (!containers.IsDefined() || !containers.IsSequence() || containers.size() != 1 ||
      !containers[0].IsMap()) {
    return Needs(list, "one container, which trains", containers);
  }
  const YAML::Node container = containers[0];
  const std::string at = list + "[0].";
  static constexpr std::string_view kUsed[] = {"name", "command",    "args",
                                               "env",  "workingDir", "resources"};
  NoteUnused(container, at, kUsed);
  ESPALIER_RETURN_IF_ERROR(Variables(container["env"], at + "env"));
  ESPALIER_RETURN_IF_ERROR(Resources(container["resources"], at + "resources"));
  ESPALIER_ASSIGN_OR_RETURN(auto words, Words(container["command"], at + "command"));
  ESPALIER_ASSIGN_OR_RETURN(const auto more, Words(container["args"], at + "args"));
  if (words.empty()) {
    return Needs(at + "command",
                 "the words of a command: agents run no images, so there is no "
                 "entry point of one to take",
                 container["command"]);
  }
  words.insert(words.end(), more.begin(), more.end());
  // Braces mean nothing there.
  std::transform(words.begin() + 1, words.end(), words.begin() + 1, LiteralWord);
  study_["command"] = std::move(words);
  const YAML::Node folder = container["workingDir"];
  if (folder.IsDefined() && folder.IsScalar()) study_["directory"] = folder.Scalar();
  return absl::OkStatus();
}

absl::StatusOr<AdaptDLJob> JobReader::Read(const YAML::Node& job) {
  if (!job.IsMap() || !job["kind"].IsDefined() || !job["kind"].IsScalar() ||
      job["kind"].Scalar() != kKind) {
    return Needs("kind", absl::StrCat(kKind, ", the one kind with an apiVersion that is taken"),
                 job.IsMap() ? job["kind"] : job);
  }
  const YAML::Node version = job["apiVersion"];
  if (!version.IsDefined() || !version.IsScalar() ||
      !absl::StartsWith(version.Scalar(), kApiGroup)) {
    return Needs("apiVersion", absl::StrCat(kApiGroup, "v1"), version);
  }
  ESPALIER_RETURN_IF_ERROR(Name(job));
  ESPALIER_ASSIGN_OR_RETURN(const YAML::Node spec, Object(job, "", "spec"));
  static constexpr std::string_view kSpec[] = {"minReplicas", "maxReplicas", "preemptible",
                                               "template"};
  for (const auto& entry : spec) {
    const std::string key = entry.first.Scalar();
    if (std::find(std::begin(kSpec), std::end(kSpec), key) != std::end(kSpec)) continue;
    const std::string_view near = NearName(key, kSpec);
    return absl::InvalidArgumentError(absl::StrCat(
        label_, ": spec.", key, " is unknown; known are ",
        absl::StrJoin(std::vector<std::string>(std::begin(kSpec), std::end(kSpec)), ", "),
        near.empty() ? "" : absl::StrCat("; did you mean ", std::string(near), "?")));
  }
  ESPALIER_RETURN_IF_ERROR(Replicas(spec));
  ESPALIER_ASSIGN_OR_RETURN(const YAML::Node form, Object(spec, "spec.", "template"));
  ESPALIER_ASSIGN_OR_RETURN(const YAML::Node pod, Object(form, "spec.template.", "spec"));
  static constexpr std::string_view kPod[] = {"containers", "restartPolicy"};
  NoteUnused(pod, "spec.template.spec.", kPod);
  ESPALIER_RETURN_IF_ERROR(Container(pod, "spec.template.spec."));
  for (const auto& [key, value] : study_.items()) {
    if (Writable(value)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        label_, ": the job's ", key, " needs UTF-8, got ", search_spaces_json::Quote(value)));
  }
  return AdaptDLJob{study_.dump(2), std::move(unused_)};
}

}  // namespace

absl::StatusOr<AdaptDLJob> ReadAdaptDLJob(std::string_view yaml, const std::string& label) {
  ESPALIER_RETURN_IF_ERROR(CheckYamlText(yaml, label));
  try {
    const std::string text(yaml);
    const int documents = Documents::CountOf(text);
    if (documents != 1) {
      return absl::InvalidArgumentError(absl::StrCat(label, ": needs one YAML document, an ", kKind,
                                                     ", got ", documents == 0 ? "none" : "more"));
    }
    return JobReader(label).Read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": line ", error.mark.line + 1, ": ", error.msg));
  }
}

}  // namespace espalier
