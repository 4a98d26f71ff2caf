#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace espalier::samplers {

// What a sampler has worked out and may need again. It saves time alone: the value says what it was
// made of, and who gets one that was made of something else works it out anew. Any number of
// threads may use it; values are not changed once they are kept.
template <typename Value>
class Memo {
 public:
  // The value that was kept last; null: none was.
  std::shared_ptr<const Value> Last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

  void Keep(std::shared_ptr<const Value> value) const {
    const std::lock_guard lock(mutex_);
    last_.swap(value);  // what it held is freed once the lock is
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  mutable std::shared_ptr<const Value> last_;
};

// The same of a value that follows the trials by small changes. One call at a time has it; those
// that come meanwhile begin with none, and what is kept last stays.
template <typename Value>
class LentMemo {
 public:
  // Null: none was kept, or another call has it.
  std::unique_ptr<Value> Take() const {
    const std::lock_guard lock(mutex_);
    return std::move(kept_);
  }

  void Keep(std::unique_ptr<Value> value) const {
    const std::lock_guard lock(mutex_);
    kept_.swap(value);  // what it held is freed once the lock is
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  mutable std::unique_ptr<Value> kept_;
};

}  // namespace espalier::samplers
