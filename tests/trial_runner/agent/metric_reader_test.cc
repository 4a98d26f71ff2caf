#include "trial_runner/agent/metric_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/storage/scratch_folder.h"
#include "trial_runner/agent/output_watch.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;

v1::OutputMetric Metric(const std::string& pattern, const std::string& step = "") {
  v1::OutputMetric metric;
  metric.set_pattern(pattern);
  metric.set_step(step);
  return metric;
}

MetricReader ReaderOf(const std::string& pattern, const std::string& step = "") {
  return *MetricReader::Make(Metric(pattern, step));
}

using Values = std::vector<std::pair<std::int64_t, double>>;

Values ValuesOf(const std::vector<v1::Report>& reports) {
  Values values;
  for (const v1::Report& report : reports) values.emplace_back(report.step(), report.value());
  return values;
}

Values ValuesOf(const std::vector<v1::ReplicaMessage>& messages) {
  Values values;
  for (const v1::ReplicaMessage& message : messages) {
    if (message.has_report())
      values.emplace_back(message.report().step(), message.report().value());
  }
  return values;
}

TEST(MetricReader, TakesCompleteLinesInAnyPieces) {
  MetricReader reader = ReaderOf("loss=([0-9.]+)");
  EXPECT_THAT(ValuesOf(reader.Take("start\nlo")), ElementsAre());
  EXPECT_THAT(ValuesOf(reader.Take("ss=0.")), ElementsAre());
  EXPECT_THAT(ValuesOf(reader.Take("5\nloss=0.25\n\nloss=")),
              ElementsAre(Pair(1, 0.5), Pair(2, 0.25)));
  EXPECT_THAT(ValuesOf(reader.Take("0.125")), ElementsAre());
  EXPECT_THAT(ValuesOf(reader.End()), ElementsAre(Pair(3, 0.125)));
  EXPECT_TRUE(reader.found());
}

TEST(MetricReader, TakesACarriageReturnForALinesEnd) {
  MetricReader reader = ReaderOf("loss=([0-9.]+)");
  EXPECT_THAT(ValuesOf(reader.Take("10 % loss=3\r20 % loss=2\r\nloss=1\r")),
              ElementsAre(Pair(1, 3), Pair(2, 2), Pair(3, 1)));
}

TEST(MetricReader, SeesNoColours) {
  MetricReader reader = ReaderOf("^loss: ([0-9.]+)$");
  EXPECT_THAT(ValuesOf(reader.Take("\x1b[1;32mloss:\x1b[0m 0.5\x1b[K\n")),
              ElementsAre(Pair(1, 0.5)));
}

TEST(MetricReader, TakesStepsFromTheLineOrFromOneBefore) {
  MetricReader same = ReaderOf(R"(loss=(\S+) step=(\d+))");
  EXPECT_THAT(ValuesOf(same.Take("loss=1 step=10\nloss=2 step=20\n")),
              ElementsAre(Pair(10, 1), Pair(20, 2)));
  MetricReader before = ReaderOf(R"(val_loss: (\S+))", R"(Epoch (\d+)/)");
  EXPECT_THAT(ValuesOf(before.Take("Epoch 1/3\n - val_loss: 0.5\nEpoch 2/3\n - val_loss: 0.4\n")),
              ElementsAre(Pair(1, 0.5), Pair(2, 0.4)));
}

TEST(MetricReader, TakesFiguresOfTheLine) {
  v1::OutputMetric metric = Metric(R"(loss=(\S+)(?: latency=(?P<latency>\S+))?)");
  metric.add_figures("latency");
  MetricReader reader = *MetricReader::Make(metric);
  const std::vector<v1::Report> reports = reader.Take("loss=1 latency=20\nloss=2\nlatency=3\n");
  EXPECT_THAT(ValuesOf(reports), ElementsAre(Pair(1, 1), Pair(2, 2)));
  EXPECT_THAT(reports[0].extra(), ElementsAre(Pair("latency", 20)));
  EXPECT_THAT(reports[1].extra(), ElementsAre());
}

TEST(MetricReader, BoundsALineWithoutAnEnd) {
  MetricReader reader = ReaderOf("loss=([0-9]+)");
  EXPECT_THAT(ValuesOf(reader.Take("loss=7 ")), ElementsAre());
  for (int i = 0; i < 40; ++i) reader.Take(std::string(kMaxOutputLine_bytes / 8, '.'));
  EXPECT_THAT(ValuesOf(reader.Take(" loss=8\nloss=9\n")), ElementsAre(Pair(1, 7), Pair(2, 9)));
}

TEST(MetricReader, QuotesTheNearestLinesWhereItFoundNothing) {
  MetricReader reader = ReaderOf("val_loss=([0-9.]+)");
  reader.Take("Loading data\nval loss: 0.5\nEpoch 2\nbye\nVAL_LOSS 0.25\nnothing\n");
  EXPECT_THAT(reader.WhyNone(),
              EndsWith(R"x(by "from_output": "val_loss=([0-9.]+)"; the nearest lines: )x"
                       R"("VAL_LOSS 0.25", "val loss: 0.5", "Epoch 2")"));
  MetricReader silent = ReaderOf("loss=(.*)");
  silent.Take("\n \n");
  silent.End();
  EXPECT_THAT(silent.WhyNone(), EndsWith("it has printed nothing"));
}

TEST(MetricReader, SaysWhatIsNoNumber) {
  MetricReader reader = ReaderOf("loss=(.*)");
  reader.Take(absl::StrCat("val loss 0.5\nloss=0.5,\n", std::string(500, 'x'), "\n"));
  EXPECT_THAT(reader.WhyNone(),
              HasSubstr(R"(the nearest lines: "loss=0.5," ("0.5," is no number), )"));
  EXPECT_LT(reader.WhyNone().size(), 700U);
}

TEST(MetricReader, GoesOnInTheAgentsSuccessor) {
  MetricReader before = ReaderOf(R"(loss=(\S+))", R"(Epoch (\d+))");
  before.Take("Epoch 4\nloss=3\nlos");
  v1::HandedOutput handed;
  before.HandOver(handed);
  MetricReader after = ReaderOf(R"(loss=(\S+))", R"(Epoch (\d+))");
  after.TakeOver(handed);
  EXPECT_TRUE(after.found());
  EXPECT_THAT(ValuesOf(after.Take("s=2\n")), ElementsAre(Pair(4, 2)));
}

// ---- The log ---------------------------------------------------------------------------------

class OutputWatchTest : public testing::Test {
 protected:
  OutputWatchTest() {
    start_.mutable_output_metric()->set_pattern("loss=([0-9.]+)");
    Print("");
  }

  void Print(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  std::unique_ptr<OutputWatch> Watch() { return OutputWatch::Of(start_, path_); }

  static std::string FailureIn(const std::vector<v1::ReplicaMessage>& messages) {
    return messages.empty() ? "" : messages.back().finished().failure();
  }

  ScratchFolder folder_;
  const std::string path_ = folder_.File("replica-1.log");
  v1::StartReplica start_;
};

TEST_F(OutputWatchTest, ReadsALogAsItGrows) {
  const auto watch = Watch();
  Print("loss=3\nlo");
  EXPECT_THAT(ValuesOf(watch->Look(OutputWatch::HowMuch::kSome)), ElementsAre(Pair(1, 3)));
  Print("ss=2\n");
  EXPECT_THAT(ValuesOf(watch->Look(OutputWatch::HowMuch::kSome)), ElementsAre(Pair(2, 2)));
  Print("loss=1");
  const auto last = watch->End(true);
  EXPECT_THAT(ValuesOf(last), ElementsAre(Pair(3, 1)));
  EXPECT_EQ(FailureIn(last), "");
}

TEST_F(OutputWatchTest, IsThatOfTheFirstProcessAlone) {
  start_.set_joins(2);
  EXPECT_EQ(Watch(), nullptr);
  start_.set_joins(0);
  EXPECT_NE(Watch(), nullptr);
  start_.clear_output_metric();
  EXPECT_EQ(Watch(), nullptr);
}

TEST_F(OutputWatchTest, FailsATrialThatEndsWellWithoutAValue) {
  Print("loss: 3\n");
  EXPECT_THAT(FailureIn(Watch()->End(true)), HasSubstr("\"loss: 3\""));
  EXPECT_EQ(FailureIn(Watch()->End(false)), "");  // that has another reason
  const auto reporting = Watch();
  reporting->ProgramSpeaks();
  EXPECT_EQ(FailureIn(reporting->End(true)), "");
  (*start_.mutable_environment())["ESPALIER_LAST_STEP"] = "4";  // it had values before
  EXPECT_EQ(FailureIn(Watch()->End(true)), "");
}

TEST_F(OutputWatchTest, LosesNoValueAndSeesNoneTwiceWhereTheLogIsCut) {
  for (const TrimBy by : {TrimBy::kAnyMeans, TrimBy::kCopy}) {
    std::ofstream(path_, std::ios::trunc).close();
    const auto watch = Watch();
    Values seen;
    Values printed;
    for (int step = 1; step <= 4000; ++step) {
      Print(absl::StrCat("loss=", step, " ", std::string(60, '.'), "\n"));
      printed.emplace_back(step, step);
      if (step % 1000 != 0) continue;
      for (const auto& value : ValuesOf(watch->Look(OutputWatch::HowMuch::kAll)))
        seen.push_back(value);
      Print("loss=");  // after it was read, and before it is cut
      const auto cut = TrimLog(path_, 32 << 10, by);
      ASSERT_TRUE(cut.ok()) << cut.status();
      EXPECT_GT(cut->bytes, 0);
      watch->Cut(*cut);
      Print(absl::StrCat(++step, "\n"));
      printed.emplace_back(step, step);
    }
    for (const auto& value : ValuesOf(watch->End(true))) seen.push_back(value);
    EXPECT_EQ(seen, printed);
  }
}

TEST_F(OutputWatchTest, GoesOnInTheAgentsSuccessor) {
  const auto before = Watch();
  Print("loss=3\nloss=");
  before->Look(OutputWatch::HowMuch::kSome);
  v1::HandedReplica handed;
  *handed.mutable_start() = start_;
  handed.set_log_path(path_);
  EXPECT_EQ(OutputWatch::Of(handed), nullptr);  // the agent before did not read it
  *handed.mutable_output() = before->HandOver();
  const auto after = OutputWatch::Of(handed);
  Print("2\n");
  EXPECT_THAT(ValuesOf(after->Look(OutputWatch::HowMuch::kSome)), ElementsAre(Pair(2, 2)));
}

}  // namespace
}  // namespace espalier
