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
  EXPECT_THAT(kept, HasSubstr("\nRuntimeError: Error(s) in loading state_dict:\n"));
  EXPECT_TRUE(kept.ends_with("kkk end.\n"));
}

TEST(LastLinesOfProgram, KeepsTheNameOfAnErrorWithAVeryLongLine) {
  const std::string message = "ValueError: got " + std::string(90'000, 'x') + ": want less";
  const std::string kept = LastLinesOfProgram(Traceback(100, message), 4096);
  EXPECT_LE(kept.size(), 4096u);
  EXPECT_TRUE(kept.starts_with("Traceback (most recent call last):\n  File \"train.py\""));
  EXPECT_THAT(kept, HasSubstr("\nValueError: got xxx"));
  EXPECT_TRUE(kept.ends_with("xxx: want less\n"));
}

TEST(LastLinesOfProgram, KeepsTheNameOfAnErrorWithAMessageOfManyLines) {
  std::string message = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:";
  for (int i = 0; i < 100; ++i) message += absl::StrCat("\n/tmp/kernel.cpp:", i, ": error: no");
  for (const int frames : {2, 100}) {
    const std::string kept = LastLinesOfProgram(Traceback(frames, message), 1024);
    EXPECT_LE(kept.size(), 1024u);
    EXPECT_TRUE(kept.starts_with("Traceback (most recent call last):\n  File \"train.py\""));
    EXPECT_THAT(kept, HasSubstr("\ntorch._dynamo.exc.BackendCompilerFailed: "));
    EXPECT_TRUE(kept.ends_with("kernel.cpp:99: error: no\n"));
  }
}

// What stands on the line on which a traceback begins.
TEST(LastLinesOfProgram, KeepsBothEndsOfATracebackBelowProgress) {
  const std::string bar = "\r 56%|\xe2\x96\x88\xe2\x96\x88 | 56/100 [00:01<00:01]";
  for (const std::string& before :
       {std::string("step 1\rstep 2\r"), std::string("step 2\r\n"), std::string("epoch 1: "),
        bar + bar, std::string("\r  5%|\xe2\x96\x88 | 5/100 [00:01]"),
        std::string("\x1b[32mstep 2\x1b[0m\r"), "\x1b]0;training\x07" + bar + "\r\x1b[K"}) {
    const std::string kept =
        LastLinesOfProgram("epoch 1\n" + before + Traceback(100, "ValueError: no"), 1024);
    EXPECT_TRUE(kept.starts_with("Traceback (most recent call last):\n  File \"train.py\""))
        << kept;
    EXPECT_TRUE(kept.ends_with("(*args, **kwargs)\nValueError: no\n")) << kept;
    EXPECT_LE(kept.size(), 1024u);
  }
}

TEST(LastLinesOfProgram, KeepsATracebackWithColoursOrOtherEndsOfLines) {
  std::string lines;
  std::string colours;
  for (const char c : Traceback(100, "ValueError: no")) {
    lines += c == '\n' ? "\r\n" : std::string(1, c);
    colours += c == '"' ? "\x1b[35m\"\x1b[0m" : std::string(1, c);
  }
  const std::string plain = LastLinesOfProgram(Traceback(100, "ValueError: no"), 1024);
  EXPECT_EQ(LastLinesOfProgram(lines, 1024), plain);
  EXPECT_EQ(LastLinesOfProgram(colours, 1024), plain);
}

TEST(LastLinesOfProgram, KeepsTheFirstAndTheLastErrorOfAChain) {
  const std::string during =
      "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::string cause =
      "\nThe above exception was the direct cause of the following exception:\n\n";
  const std::string first = absl::StrCat(Traceback(100, "KeyError: 'first'"), during);
  const std::string between = absl::StrCat(Traceback(100, "KeyError: 'first'"), cause,
                                           Traceback(100, "OSError: between"), during);
  for (const std::string& whole : {absl::StrCat(first, Traceback(100, "ValueError: last")),
                                   absl::StrCat(between, Traceback(100, "ValueError: last")),
                                   absl::StrCat(first, Traceback(0, "ValueError: last"))}) {
    const std::string kept = LastLinesOfProgram("step 1\r" + whole, 4096);
    EXPECT_LE(kept.size(), 4096u);
    EXPECT_TRUE(kept.starts_with("Traceback (most recent call last):\n  File \"train.py\""))
        << kept;
    EXPECT_THAT(kept, HasSubstr("\nKeyError: 'first'\n"));
    EXPECT_THAT(kept,
                HasSubstr(during + "Traceback (most recent call last):\n  File \"train.py\""));
    EXPECT_TRUE(kept.ends_with("\nValueError: last\n"));
  }
}

TEST(LastLinesOfProgram, KeepsBothEndsOfAGroupOfExceptions) {
  std::string whole = "  + Exception Group Traceback (most recent call last):\n";
  for (int i = 0; i < 60; ++i) whole += "  |   File \"train.py\", line 9, in <module>\n";
  whole +=
      "  | ExceptionGroup: two (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
      "    | Traceback (most recent call last):\n";
  for (int i = 0; i < 60; ++i) whole += "    |   File \"module.py\", line 9, in step\n";
  whole += "    | ValueError: no\n    +------------------------------------\n";
  const std::string kept = LastLinesOfProgram("epoch 1\n" + whole, 1024);
  EXPECT_TRUE(kept.starts_with("  + Exception Group Traceback")) << kept;
  EXPECT_TRUE(kept.ends_with("    | ValueError: no\n    +------------------------------------\n"));
}

TEST(LastLinesOfProgram, KeepsBothEndsOfATracebackInABox) {
  std::string whole = "\xe2\x95\xad\xe2\x94\x80 Traceback (most recent call last) \xe2\x94\x80\n";
  for (int i = 0; i < 60; ++i) whole += "\xe2\x94\x82 train.py:9 in <module>  \xe2\x94\x82\n";
  whole += "\xe2\x95\xb0\xe2\x94\x80\nValueError: no\n";
  const std::string kept = LastLinesOfProgram("epoch 1\n" + whole, 1024);
  EXPECT_TRUE(kept.starts_with("\xe2\x95\xad\xe2\x94\x80 Traceback")) << kept;
  EXPECT_TRUE(kept.ends_with("\nValueError: no\n"));
}

TEST(LastLinesOfProgram, IsTheEndWhereNoTracebackIsCut) {
  const std::string shown = Traceback(2, "ValueError: no");
  EXPECT_EQ(LastLinesOfProgram(shown, 1024), shown);
  std::string prints;
  for (int i = 0; i < 90; ++i) prints += "10 bytes.\n";
  const std::string fits = prints + shown;
  EXPECT_EQ(LastLinesOfProgram(fits, 1024), LastLines(fits, 1024));
  const std::string lives_on =
      Traceback(100, "ValueError: no") + prints + prints + prints + prints + prints;
  EXPECT_EQ(LastLinesOfProgram(lives_on, 1024), LastLines(lives_on, 1024));
  const std::string told =
      "Traceback (most recent call last) is how one begins\n" + prints + prints;
  EXPECT_EQ(LastLinesOfProgram(told, 1024), LastLines(told, 1024));
}

TEST(LastLinesOfProgram, LeavesTheMiddleOfALongLineOut) {
  const std::string kept = LastLinesOfProgram("{" + std::string(9000, '.') + "}\nlast\n", 1024);
  EXPECT_TRUE(kept.starts_with("{..."));
  EXPECT_THAT(kept, HasSubstr(". [...] ."));
  EXPECT_TRUE(kept.ends_with("}\nlast\n"));
}

TEST(LastLinesOfProgram, CutsNoCharacterInTwo) {
  for (std::size_t before = 0; before < 3; ++before) {
    std::string line(before, '.');
    for (int i = 0; i < 1000; ++i) line += "\xe2\x82\xac";
    const std::string kept = LastLinesOfProgram(line + "\n" + Traceback(100, line), 1024);
    EXPECT_EQ(ValidUtf8(kept), kept);
    EXPECT_EQ(kept.find('?'), std::string::npos);
  }
}

TEST(ValidUtf8, ReplacesWhatIsNotACharacter) {
  EXPECT_EQ(ValidUtf8("ok \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "ok \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(ValidUtf8("\xff|\xc3|\xc0\xaf|\xed\xa0\x80"), "?|?|??|???");
  EXPECT_EQ(ValidUtf8("cut \xe2\x82"), "cut ??");
}

}  // namespace
}  // namespace espalier
