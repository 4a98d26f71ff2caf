#pragma once

#include <string>

namespace espalier {

// While it lives, a check that fails on this thread says along with its message what the thread was
// at, by calling `what`, which must outlive it. Of several the innermost speaks.
class CheckScope {
 public:
  template <typename What>
  explicit CheckScope(const What& what)
      : CheckScope(&what, [](const void* text) { return (*static_cast<const What*>(text))(); }) {}
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

  // What this thread is at; empty: nothing that was named.
  static std::string Text();

 private:
  using TextOf = std::string (*)(const void*);
  CheckScope(const void* what, TextOf text);

  const void* const what_;
  const TextOf text_;
  CheckScope* const outer_;
};

}  // namespace espalier
