// Programs that answer lines with lines, and those that do not.

#include "tuner/server/optuna/confined_program.h"

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr double kPlenty_s = 300;

std::unique_ptr<ConfinedProgram> Start(const std::string& script) {
  auto program = ConfinedProgram::Start({"/bin/sh", "-c", script}, {"ONLY=this"});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

absl::StatusOr<std::string> Say(const std::string& script, double limit_s = kPlenty_s) {
  return Start(script)->Exchange("hello\n", limit_s, {});
}

TEST(ConfinedProgram, AnswersEachLineWithALine) {
  const auto program =
      Start("while read line; do echo \"$line, $ONLY$HOME\"; echo noise >&2; done");
  EXPECT_EQ(*program->Exchange("one\n", kPlenty_s, {}), "one, this");
  EXPECT_EQ(*program->Exchange("two\n", kPlenty_s, {}), "two, this");
  const std::string text(1 << 20, 'x');
  const auto echo = Start("exec /bin/cat");
  EXPECT_EQ(*echo->Exchange(text + "\n", kPlenty_s, {}), text);
}

TEST(ConfinedProgram, OneThatEndsSaysHow) {
  const absl::Status exited = Say("read line; echo first >&2; echo last >&2; exit 3").status();
  EXPECT_EQ(exited.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(exited.message(), "it ended with exit code 3: last");
  EXPECT_THAT(std::string(Say("read line; kill -KILL $$").status().message()),
              HasSubstr("it was ended by signal 9 (Killed)"));
  EXPECT_EQ(Say("read line; kill -XCPU $$").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Say("exec 2>&-; read line; exit 4").status().message(), "it ended with exit code 4");
}

TEST(ConfinedProgram, OneThatHangsOrRamblesIsGivenUp) {
  EXPECT_EQ(Say("sleep 1000", 0.01).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Say("exec tr '\\0' x < /dev/zero").status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ConfinedProgram, OneThatWorksMayTakeLonger) {
  EXPECT_EQ(*Say("i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo done", 0.02), "done");
}

TEST(ConfinedProgram, IsAskedNoMoreOnceItIsToStop) {
  std::stop_source stop;
  const auto program = Start("sleep 1000");
  std::jthread stopping([&stop] { stop.request_stop(); });
  EXPECT_EQ(program->Exchange("hello\n", kPlenty_s, stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(ConfinedProgram, ThatIsNotThereIsNotStarted) {
  const auto none = ConfinedProgram::Start({"/no/such/python"}, {});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("\"/no/such/python\" cannot be"));
}

}  // namespace
}  // namespace espalier
