#include "trial_runner/agent/terminal_text.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(TerminalText, ShowsWhatALineWasWrittenOverBy) {
  EXPECT_EQ(TerminalText("step 1\rstep 2\rdone\n"), "done\n");
  EXPECT_EQ(TerminalText("step 8 of 100\rTraceback\n"), "Traceback\n");
  EXPECT_EQ(TerminalText("before\nbar\r\x1b[Kend\n"), "before\nend\n");
}

TEST(TerminalText, ShowsALineThatNothingIsWrittenOver) {
  EXPECT_EQ(TerminalText("step 9\r"), "step 9");
  EXPECT_EQ(TerminalText("100%\r\nend\r\r\n"), "100%\nend\n");
}

TEST(TerminalText, LeavesEscapeSequencesOut) {
  EXPECT_EQ(TerminalText("\x1b[1;31mred\x1b[0m and \x1b[35m\"x.py\"\x1b[m"), "red and \"x.py\"");
  EXPECT_EQ(TerminalText("\x1b]0;title\x07plain"), "plain");
  EXPECT_EQ(TerminalText("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\."), "link.");
  EXPECT_EQ(TerminalText("\x1b(Bab\x1b"
                         "7c"),
            "abc");
}

TEST(TerminalText, KeepsTheLineBelowABrokenSequence) {
  EXPECT_EQ(TerminalText("\x1b[12\nnext"), "\nnext");
  EXPECT_EQ(TerminalText("\x1b]0;title\nnext"), "\nnext");
  EXPECT_EQ(TerminalText("\x1b\nnext\x1b"), "\nnext");
  EXPECT_EQ(TerminalText("\x1b["), "");
}

TEST(TerminalText, KeepsTabsAndCharactersOfSeveralBytes) {
  EXPECT_EQ(TerminalText(std::string_view("a\tb\0\x08\x7f|", 7)), "a\tb|");
  EXPECT_EQ(TerminalText("\xe2\x96\x88 50%\r\xe2\x96\x88\xe2\x96\x88"), "\xe2\x96\x88\xe2\x96\x88");
  EXPECT_EQ(TerminalText("\x1b\xc3\xa4"), "\xc3\xa4");
}

}  // namespace
}  // namespace espalier
