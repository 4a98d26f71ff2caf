#include "trial_runner/agent/file_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;

using StepsAndValues = std::vector<std::pair<std::int64_t, double>>;

constexpr double kThird = 1.F / 3;  // as a float has it
constexpr double kInfinite = std::numeric_limits<double>::infinity();

StepsAndValues TakenFrom(const std::vector<v1::ReplicaMessage>& messages) {
  StepsAndValues values;
  for (const v1::ReplicaMessage& message : messages) {
    if (message.has_report())
      values.emplace_back(message.report().step(), message.report().value());
  }
  return values;
}

std::string WhyItFailed(const std::vector<v1::ReplicaMessage>& messages) {
  return messages.empty() ? "" : messages.back().finished().failure();
}

std::string EventsWrittenBy(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(absl::StrCat(EVENTS_FOLDER, "/", name, ".tfevents")).rdbuf();
  return text.str();
}

class FileWatchTest : public testing::Test {
 protected:
  std::unique_ptr<FileWatch> Lines(const std::string& value, const std::string& step = "") {
    v1::StartReplica start;
    start.mutable_file_metric()->set_path(folder_.File("log.jsonl"));
    start.mutable_file_metric()->set_value(value);
    start.mutable_file_metric()->set_step(step);
    start_ = start;
    return FileWatch::Of(start);
  }
  std::unique_ptr<FileWatch> Events(const std::string& tag, const std::string& below = "runs") {
    v1::StartReplica start;
    start.mutable_file_metric()->set_path(folder_.File(below));
    start.mutable_file_metric()->set_tag(tag);
    start_ = start;
    return FileWatch::Of(start);
  }
  void Append(const std::string& name, std::string_view text) {
    const std::filesystem::path path = folder_.File(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }
  // What a watch sees in two looks, as it walks through folders in each second one.
  static StepsAndValues Seen(FileWatch& watch) {
    std::vector<v1::ReplicaMessage> messages = watch.Look();
    for (v1::ReplicaMessage& more : watch.Look()) messages.push_back(std::move(more));
    return TakenFrom(messages);
  }

  ScratchFolder folder_;
  v1::StartReplica start_;
};

TEST_F(FileWatchTest, TakesLinesAsTheyAreWritten) {
  const auto watch = Lines("val_loss");
  EXPECT_THAT(Seen(*watch), IsEmpty()) << "there is no file yet";
  Append("log.jsonl", "{\"step\": 3, \"val_loss\": 0.5}\n{\"step\": 4, \"lr\": 1}\n{\"val_");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(3, 0.5)));
  Append("log.jsonl", "loss\": 0.25, \"step\": 5.0}\n");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(5, 0.25)));
  Append("log.jsonl", R"({"step": 6, "val_loss": NaN})");
  EXPECT_THAT(Seen(*watch), IsEmpty()) << "a line has an end";
  EXPECT_THAT(TakenFrom(watch->End(true)), ElementsAre(Pair(6, IsNan())));
}

TEST_F(FileWatchTest, TakesNumbersAsProgramsWriteThem) {
  const auto watch = Lines("eval.loss", "epoch");
  Append("log.jsonl",
         "{\"eval.loss\": -Infinity, \"epoch\": 1}\r\n"
         "{\"eval\": {\"loss\": \"inf\"}, \"epoch\": \"2\"}\n"
         "{\"eval\": {\"loss\": 1e-3}, \"epoch\": 2.5}\n"
         "{\"eval\": {\"loss\": 7}}\n");
  EXPECT_THAT(Seen(*watch),
              ElementsAre(Pair(1, -kInfinite), Pair(2, kInfinite), Pair(1, 1e-3), Pair(2, 7)))
      << "values without a whole step are counted";
}

TEST_F(FileWatchTest, TakesFiguresOfTheLine) {
  v1::StartReplica start;
  start.mutable_file_metric()->set_path(folder_.File("log.jsonl"));
  start.mutable_file_metric()->set_value("loss");
  for (const char* figure : {"latency_ms", "eval.size"}) {
    start.mutable_file_metric()->add_figures(figure);
  }
  const auto watch = FileWatch::Of(start);
  EXPECT_THAT(watch->Look(), IsEmpty());
  Append("log.jsonl",
         "{\"loss\": 0.5, \"latency_ms\": \"12\", \"eval\": {\"size\": 3}}\n"
         "{\"loss\": 0.4, \"latency_ms\": null}\n");
  const std::vector<v1::ReplicaMessage> messages = watch->End(true);
  ASSERT_GE(messages.size(), 2U);
  EXPECT_THAT(messages[0].report().extra(),
              UnorderedElementsAre(Pair("latency_ms", 12), Pair("eval.size", 3)));
  EXPECT_THAT(messages[1].report().extra(), IsEmpty());
}

TEST_F(FileWatchTest, LeavesAloneWhatWasThereBefore) {
  Append("log.jsonl", "{\"loss\": 9, \"step\": 1}\n");
  const auto watch = Lines("loss");
  Append("log.jsonl", "{\"loss\": 1, \"step\": 2}\n");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(2, 1)));
  std::ofstream(folder_.File("log.jsonl")) << "{\"loss\": 3}\n";
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(1, 3))) << "written anew";
}

TEST_F(FileWatchTest, ReadsAFileToItsEndThatIsRenamed) {
  const auto watch = Lines("loss");
  Append("log.jsonl", "{\"loss\": 1}\n");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(1, 1)));
  Append("log.jsonl", "{\"loss\": 2}\n");
  std::filesystem::rename(folder_.File("log.jsonl"), folder_.File("log.jsonl.1"));
  Append("log.jsonl", "{\"loss\": 3}\n");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(2, 2), Pair(3, 3)));
  std::filesystem::rename(folder_.File("log.jsonl"), folder_.File("log.jsonl.2"));
  Append("log.jsonl.2", "{\"loss\": 4}\n");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(4, 4))) << "none follows yet";
}

TEST_F(FileWatchTest, PassesOverWhatIsTooLong) {
  const auto watch = Lines("loss");
  Append("log.jsonl", "{\"text\": \"" + std::string(3 * kMaxRecord_bytes, 'x') + "\"}\n");
  Append("log.jsonl", "{\"loss\": 1}\n");
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(1, 1)));
}

TEST_F(FileWatchTest, DoesNotWaitForAPipe) {
  ASSERT_EQ(mkfifo(folder_.File("log.jsonl").c_str(), 0600), 0);
  const auto watch = Lines("loss");
  EXPECT_THAT(Seen(*watch), IsEmpty());
  EXPECT_THAT(WhyItFailed(watch->End(true)), EndsWith("log.jsonl is no file"));
}

TEST_F(FileWatchTest, SaysWhatIsThereInstead) {
  const auto watch = Lines("val_loss");
  Append("logs.jsonl", "{}\n");
  EXPECT_THAT(WhyItFailed(watch->End(true)),
              AllOf(StartsWith("it ended, and nothing that it wrote has a value by \"from_file\": "
                               "\"val_loss\"; there is no "),
                    EndsWith(" there is logs.jsonl")));
  Append("log.jsonl", "Epoch 1\n{\"epoch\": 1, \"loss\": 2, \"val_loss\": {\"mean\": 1}}\n");
  EXPECT_THAT(WhyItFailed(watch->End(true)),
              EndsWith("log.jsonl there is \"epoch\", \"loss\", \"val_loss\"; what is no JSON "
                       "object: \"Epoch 1\""));
  EXPECT_THAT(WhyItFailed(watch->End(false)), IsEmpty()) << "it has a reason of its own";
}

TEST_F(FileWatchTest, TakesWhatTorchAndTensorboardXHaveWritten) {
  const auto watch = Events("val/loss");
  EXPECT_THAT(Seen(*watch), IsEmpty()) << "there is no folder yet";
  Append("runs/a/version_0/events.out.tfevents.1", EventsWrittenBy("torch"));
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(1, 0.5), Pair(2, 0.25), Pair(3, 0.125)));
  Append("runs/b/events.out.tfevents.2", EventsWrittenBy("x"));
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(1, 0.75), Pair(2, IsNan()), Pair(3, kInfinite)));
}

TEST_F(FileWatchTest, TakesEventsInAnyPieces) {
  const auto watch = Events("val/loss");
  StepsAndValues seen;
  for (const char byte : EventsWrittenBy("torch")) {
    Append("runs/events.out.tfevents.1", {&byte, 1});
    for (const auto& value : TakenFrom(watch->Look())) seen.push_back(value);
  }
  EXPECT_THAT(seen, ElementsAre(Pair(1, 0.5), Pair(2, 0.25), Pair(3, 0.125)));
  EXPECT_THAT(watch->End(true), IsEmpty());
}

TEST_F(FileWatchTest, FollowsSeveralWritersAtOnce) {
  const std::string torch = EventsWrittenBy("torch");
  const std::string x = EventsWrittenBy("x");
  const auto watch = Events("train/loss");
  Append("runs/events.out.tfevents.1", torch.substr(0, torch.size() / 2));
  Append("runs/below/events.out.tfevents.1", x.substr(0, x.size() / 3));
  StepsAndValues seen = Seen(*watch);
  Append("runs/events.out.tfevents.1", torch.substr(torch.size() / 2));
  Append("runs/below/events.out.tfevents.1", x.substr(x.size() / 3));
  for (const auto& value : Seen(*watch)) seen.push_back(value);
  EXPECT_THAT(seen, UnorderedElementsAre(Pair(1, 1), Pair(2, 0.5), Pair(3, kThird), Pair(1, 1),
                                         Pair(2, 0.5), Pair(3, kThird)));
}

TEST_F(FileWatchTest, SaysWhichTagsThereAreInstead) {
  const auto watch = Events("loss");
  EXPECT_THAT(WhyItFailed(watch->End(true)), HasSubstr("there is no "));
  Append("runs/events.out.tfevents.1", EventsWrittenBy("torch"));
  EXPECT_THAT(WhyItFailed(watch->End(true)),
              AllOf(StartsWith("it ended, and nothing that it wrote has a value by "
                               "\"from_tensorboard\": \"loss\"; in "),
                    EndsWith("runs there is \"train/loss\", \"val/loss\"")));
  const auto damaged = Events("loss", "damaged");
  Append("damaged/events.out.tfevents.1", "this is no file of events");
  EXPECT_THAT(WhyItFailed(damaged->End(true)), EndsWith("a file has what is no record of events"));
}

TEST_F(FileWatchTest, ADamagedRecordCostsNoOther) {
  std::string bytes = EventsWrittenBy("torch");
  const std::size_t at = bytes.find("train/loss");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = '?';
  const auto watch = Events("train/loss");
  Append("runs/events.out.tfevents.1", bytes);
  EXPECT_THAT(Seen(*watch), ElementsAre(Pair(2, 0.5), Pair(3, kThird)));
}

TEST_F(FileWatchTest, GoesOnInTheAgentsSuccessor) {
  const auto before = Lines("loss");
  Append("log.jsonl", "{\"loss\": 1}\n{\"lo");
  EXPECT_THAT(Seen(*before), ElementsAre(Pair(1, 1)));
  v1::HandedReplica handed;
  *handed.mutable_start() = start_;
  *handed.mutable_files() = before->HandOver();
  const auto after = FileWatch::Of(handed);
  Append("log.jsonl", "ss\": 2}\n");
  EXPECT_THAT(Seen(*after), ElementsAre(Pair(2, 2)));
  EXPECT_THAT(after->End(true), IsEmpty()) << "it has had a value";
}

TEST_F(FileWatchTest, IsOfTheFirstProcessAlone) {
  v1::StartReplica start;
  EXPECT_EQ(FileWatch::Of(start), nullptr);
  start.mutable_file_metric()->set_path(folder_.File("log.jsonl"));
  start.mutable_file_metric()->set_value("loss");
  EXPECT_NE(FileWatch::Of(start), nullptr);
  start.set_joins(2);
  EXPECT_EQ(FileWatch::Of(start), nullptr);
}

}  // namespace
}  // namespace espalier
