#include "tests/benchmarks/power_cuts/trials.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace espalier::power_cuts {
namespace {

constexpr std::size_t kKnownDisks = 100;

using Files = std::map<std::string, std::string>;

std::size_t HashOf(const Files& files) {
  std::size_t hash = 0;
  for (const auto& [path, content] : files) {
    for (const std::string_view part : {std::string_view(path), std::string_view(content)}) {
      hash = MixSeed(hash, std::hash<std::string_view>()(part));
    }
  }
  return hash;
}

struct Variant {
  const char* name;
  Cut cut;
};

// The seeds depend on the call, so that all of the run together sees many draws.
std::vector<Variant> Variants(std::int64_t done, const FileCall* under_way) {
  using Kept = Cut::Kept;
  const auto seed = static_cast<std::uint64_t>(done);
  std::vector<Variant> all = {
      {"nothing that was not synced", {.names = Kept::kNothing, .bytes = Kept::kNothing}},
      {"names without bytes",
       {.names = Kept::kAll, .bytes = Kept::kNothing, .zeros = done % 2 == 0}},
      {"bytes without names", {.names = Kept::kNothing, .bytes = Kept::kAll}},
      {"some", {.names = Kept::kSome, .bytes = Kept::kSome, .seed = 2 * seed}},
      {"some, zeros",
       {.names = Kept::kSome, .bytes = Kept::kSome, .zeros = true, .seed = 2 * seed + 1}},
      {"everything", {}},
  };
  if (under_way != nullptr && under_way->kind == FileCall::Kind::kWrite) {
    all.push_back({"a torn write", {.under_way = under_way, .seed = seed}});
  }
  return all;
}

// What still holds when the next session begins.
Story StillTold(const Story& before) {
  Story story;
  if (!before.credentials.empty()) story.credentials.push_back(before.credentials.back());
  for (const Story::Promise& promise : before.promises) {
    if (promise.until == kNever) story.promises.push_back(promise);
  }
  for (const Story::Folder& folder : before.folders) {
    if (folder.until == kNever) story.folders.push_back(folder);
  }
  for (auto& one : story.credentials) one.at = 0;
  for (auto& one : story.promises) one.from = 0;
  for (auto& one : story.folders) one.from = 0;
  return story;
}

}  // namespace

Trials::Trials(std::string folder, std::size_t examples)
    : folder_(std::move(folder)), examples_(examples) {}

Files Trials::Play(Recorded& recorded) {
  const std::string root = folder_ + "/disk";
  WriteFolder(root, recorded.before);
  recorded.told.begin = std::filesystem::exists(root + "/" + kDatabase)
                            ? RestartOn(recorded.before)->state
                            : std::make_shared<const TunerState>();
  recorded.story = recorded.told;
  Recorder recorder(root);
  recorded.session->play(
      {.root = root, .recorder = &recorder, .story = &recorded.story, .restored = nullptr});
  NumberAnswers(recorded.story);
  recorded.calls = recorder.Calls();
  const std::string wrong = recorder.Compare();
  ESPALIER_CHECK(wrong.empty(), absl::StrCat("session ", recorded.session->name, ": ", wrong));
  return Disk::Of(root).Files();
}

const std::vector<Recorded>& Trials::Record() {
  Files disk;
  for (const Session& session : Sessions()) {
    if (session.prepare != nullptr) {
      WriteFolder(folder_ + "/disk", disk);
      session.prepare(folder_ + "/disk");
      disk = Disk::Of(folder_ + "/disk").Files();
    }
    Recorded recorded{.session = &session, .before = std::move(disk)};
    if (!recorded_.empty()) recorded.told = StillTold(recorded_.back().story);
    disk = Play(recorded);
    for (Story::Commit& commit : recorded.story.commits) {
      if (commit.after != nullptr) continue;
      recorded.restored = RestartOn(disk)->state;
      commit.after = recorded.restored;
    }
    recorded_.push_back(std::move(recorded));
  }
  return recorded_;
}

const Disk& Trials::DiskAt(const Recorded& recorded, std::int64_t done) {
  if (disk_of_ != &recorded || disk_at_ > done) {
    WriteFolder(folder_ + "/before", recorded.before);
    disk_ = std::make_unique<Disk>(Disk::Of(folder_ + "/before"));
    disk_of_ = &recorded;
    disk_at_ = 0;
  }
  for (; disk_at_ < done; ++disk_at_) {
    disk_->Apply(recorded.calls[static_cast<std::size_t>(disk_at_)]);
  }
  return *disk_;
}

std::shared_ptr<const Found> Trials::RestartOn(const Files& files) {
  const std::size_t hash = HashOf(files);
  const auto known = std::find_if(found_.begin(), found_.end(),
                                  [hash](const auto& one) { return one.first == hash; });
  if (known != found_.end()) return known->second;
  WriteFolder(folder_ + "/restarted", files);
  ++tally_.restarts;
  auto found = std::make_shared<const Found>(Restart(folder_ + "/restarted"));
  if (found_.size() == kKnownDisks) found_.erase(found_.begin());
  found_.emplace_back(hash, found);
  return found;
}

void Trials::Try(const Story& story, std::int64_t now, const Files& files,
                 const std::string& what) {
  const std::shared_ptr<const Found> found = RestartOn(files);
  const Verdict verdict = Judge(story, now, *found);
  tally_.do_not_start += found->refused.empty() ? 0 : 1;
  tally_.lost += verdict.lost.empty() ? 0 : 1;
  tally_.half += verdict.half.empty() ? 0 : 1;
  std::vector<std::string> wrong;
  if (!found->refused.empty()) wrong.push_back("does not start: " + found->refused);
  for (const std::string& lost : verdict.lost) wrong.push_back("lost: " + lost);
  for (const std::string& half : verdict.half) wrong.push_back("half: " + half);
  for (const std::string& one : wrong) {
    if (tally_.examples.size() == examples_) return;
    tally_.examples.push_back(absl::StrCat(what, ": ", one));
  }
}

void Trials::CutPower(const Recorded& recorded, std::int64_t done) {
  const Disk& disk = DiskAt(recorded, done);
  const bool ended = done == std::ssize(recorded.calls);
  const FileCall* next = ended ? nullptr : &recorded.calls[static_cast<std::size_t>(done)];
  for (const Variant& variant : Variants(done, next)) {
    Try(recorded.story, done, disk.After(variant.cut),
        absl::StrCat(recorded.session->name, ", power cut after call ", done,
                     " (next: ", ended ? "none" : NameOf(next->kind), ended ? "" : " " + next->name,
                     "), ", variant.name, " is left"));
  }
}

void Trials::GoOnAndCutPower(const Story& told, const Disk& disk, const std::string& what) {
  const std::string root = folder_ + "/disk";
  const SharedState state = RestartOn(Disk::Of(root).Files())->state;
  if (state == nullptr) return;  // it does not start, which has been counted
  Story story = StillTold(told);
  story.credentials.clear();
  story.begin = state;
  Recorder recorder(root, disk);
  GoOn({.root = root, .recorder = &recorder, .story = &story});
  NumberAnswers(story);
  Try(story, recorder.Now(),
      recorder.DiskNow().After({.names = Cut::Kept::kNothing, .bytes = Cut::Kept::kNothing}), what);
}

void Trials::Fail(const Recorded& recorded, Fault fault) {
  const std::string root = folder_ + "/disk";
  WriteFolder(root, recorded.before);
  Story story = recorded.told;
  std::int64_t end = 0;
  Disk disk;
  {
    Recorder recorder(root, fault);
    recorded.session->play(
        {.root = root, .recorder = &recorder, .story = &story, .restored = recorded.restored});
    disk = recorder.DiskNow();
    end = recorder.Now();
  }
  NumberAnswers(story);
  const FileCall::Kind kind =
      recorded
          .calls[static_cast<std::size_t>(
              std::min<std::int64_t>(fault.at, std::ssize(recorded.calls)) - 1)]
          .kind;
  const std::string what =
      absl::StrCat(recorded.session->name, ", ", fault.error == EIO ? "EIO" : "ENOSPC", " at call ",
                   fault.at, " (", NameOf(kind), ")");
  Try(story, end, Disk::Of(root).Files(), what + ", process ended");
  Try(story, end, disk.After({.names = Cut::Kept::kNothing, .bytes = Cut::Kept::kNothing}),
      what + ", then the power cut");
  if (kind == FileCall::Kind::kSync) {
    GoOnAndCutPower(story, disk, what + ", started again, then the power cut");
  }
}

}  // namespace espalier::power_cuts
