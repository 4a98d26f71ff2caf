#include "tuner/server/http/later_answers.h"

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"

namespace espalier {

absl::StatusOr<std::string> LaterAnswers::Add(const char* operation, bool closes, Start start) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= most_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "busy: ", most_, " calls wait for what takes long, the most that may; try again later"));
  }
  std::string name = absl::StrCat(++last_);
  waiting_[name] = {{.operation = operation, .closes = closes}, std::move(start)};
  return name;
}

void LaterAnswers::Begin(const std::string& name, std::function<void()> answered) {
  Start start;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = waiting_.find(name); found != waiting_.end()) {
      start = std::exchange(found->second.start, nullptr);
      if (start) std::swap(found->second.answered, answered);
    }
  }
  if (!start) return answered();
  api::TakeBack take_back;
  const absl::Status begun = Guarded(
      [] { return std::string("a call whose answer comes later"); },
      [&] {
        take_back = start([this, name](HttpAnswer answer) { Give(name, std::move(answer)); });
      });
  if (!begun.ok()) return Give(name, {begun, ""});
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(name);
    if (found == waiting_.end() || !found->second.answered) return;  // was given one
    if (!found->second.hung_up) {
      found->second.take_back = std::move(take_back);
      return;
    }
  }
  if (take_back) take_back();
}

void LaterAnswers::HungUp(const std::string& name) {
  api::TakeBack take_back;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(name);
    if (found == waiting_.end()) return;
    found->second.hung_up = true;
    take_back = std::exchange(found->second.take_back, nullptr);
  }
  if (take_back) take_back();
}

void LaterAnswers::Give(const std::string& name, HttpAnswer answer) {
  std::function<void()> answered;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(name);
    if (found == waiting_.end() || !found->second.answered) return;  // was given one
    found->second.named.answer = std::move(answer);
    answered = std::exchange(found->second.answered, nullptr);
  }
  answered();
}

LaterAnswers::Named LaterAnswers::Take(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto found = waiting_.extract(name);
  return found.empty() ? Named{} : std::move(found.mapped().named);
}

}  // namespace espalier
