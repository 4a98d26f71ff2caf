#include "trial_runner/agent/last_output.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

TEST(LastLines, KeepsAShortTextWhole) { EXPECT_EQ(LastLines("a\nb\n", 4), "a\nb\n"); }

TEST(LastLines, BeginsAtALine) {
  EXPECT_EQ(LastLines("first\nsecond\nthird\n", 10), "third\n");
  EXPECT_EQ(LastLines("first\nsecond\n", 7), "second\n");
}

TEST(LastLines, CutsALongLineAtACharacter) {
  EXPECT_EQ(LastLines("0123456789", 4), "6789");
  EXPECT_EQ(LastLines("aaa\xc3\xa4"
                      "bbb",
                      4),
            "bbb");
}

// So many frames of a library below two of the program's own.
std::string Traceback(int frames, const std::string& error) {
  std::string text =
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 9, in <module>\n    loss = step(batch)\n"
      "  File \"train.py\", line 5, in step\n    y = net(x)\n";
  for (int i = 0; i < frames; ++i) {
    text += absl::StrCat("  File \"module.py\", line ", 1000 + i, ", in _call_impl\n",
                         "    return forward_call(*args, **kwargs)\n");
  }
  return text + error + "\n";
}

TEST(LastLinesOfProgram, KeepsBothEndsOfALongTraceback) {
  const std::string whole = "epoch 1\n" + Traceback(100, "RuntimeError: shapes do not fit");
  const std::string kept = LastLinesOfProgram(whole, 1024);
  EXPECT_LE(kept.size(), 1024u);
  EXPECT_GT(kept.size(), 900u);
  EXPECT_TRUE(kept.starts_with("Traceback (most recent call last):\n  File \"train.py\""));
  EXPECT_THAT(kept, HasSubstr("    y = net(x)\n"));
  EXPECT_THAT(kept, HasSubstr("(*args, **kwargs)\n  [lines are left out here: "));
  EXPECT_TRUE(
      kept.ends_with("line 1099, in _call_impl\n    return forward_call(*args, **kwargs)\n"
                     "RuntimeError: shapes do not fit\n"));
}

TEST(LastLinesOfProgram, KeepsTheFramesAboveALongMessage) {
  const std::string error =
      "RuntimeError: Error(s) in loading state_dict:\n\tMissing key(s): " + std::string(3000, 'k') +
      " end.";
  const std::string kept = LastLinesOfProgram(Traceback(2, error), 1024);
  EXPECT_LE(kept.size(), 1024u);
  EXPECT_THAT(kept, HasSubstr("    y = net(x)\n"));
  EXPECT_TRUE(kept.ends_with("kkk end.\n"));
}

TEST(LastLinesOfProgram, IsTheEndWhereNoTracebackIsCut) {
  const std::string shown = Traceback(2, "ValueError: no");
  EXPECT_EQ(LastLinesOfProgram(shown, 1024), shown);
  const std::string prints(900, '.');
  const std::string fits = prints + "\n" + shown;
  EXPECT_EQ(LastLinesOfProgram(fits, 1024), LastLines(fits, 1024));
  const std::string logged = Traceback(100, "ValueError: no") + "going on\n" + prints + prints;
  EXPECT_EQ(LastLinesOfProgram(logged, 1024), LastLines(logged, 1024));
  const std::string quoted = "he said: " + Traceback(100, "ValueError: no");
  EXPECT_EQ(LastLinesOfProgram(quoted, 1024), LastLines(quoted, 1024));
}

TEST(ValidUtf8, ReplacesWhatIsNotACharacter) {
  EXPECT_EQ(ValidUtf8("ok \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "ok \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(ValidUtf8("\xff|\xc3|\xc0\xaf|\xed\xa0\x80"), "?|?|??|???");
  EXPECT_EQ(ValidUtf8("cut \xe2\x82"), "cut ??");
}

}  // namespace
}  // namespace espalier
