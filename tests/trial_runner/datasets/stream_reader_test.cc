#include "trial_runner/datasets/stream_reader.h"

#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kReaderSeed = 7;

// What was done to the streams of a data set.
struct Account {
  int opened = 0;
  std::int64_t read = 0;
  std::int64_t skipped = 0;
  std::vector<std::uint64_t> seeds;
};

// Counts from 1000 times the epoch on.
class CountingStream final : public SampleStream<std::int64_t> {
 public:
  CountingStream(std::int64_t epoch, std::int64_t size, Account& account)
      : next_(1000 * epoch), end_(next_ + size), account_(account) {}
  std::optional<std::int64_t> Next(std::uint64_t seed) override {
    if (next_ == end_) return std::nullopt;
    ++account_.read;
    account_.seeds.push_back(seed);
    return next_++;
  }

 private:
  std::int64_t next_;
  std::int64_t end_;
  Account& account_;
};

class SeekableStream final : public SampleStream<std::int64_t> {
 public:
  explicit SeekableStream(Account& account) : account_(account) {}
  std::optional<std::int64_t> Next(std::uint64_t) override {
    ++account_.read;
    return next_++;
  }
  void Skip(std::int64_t count) override {
    account_.skipped += count;
    next_ += count;
  }

 private:
  std::int64_t next_ = 0;
  Account& account_;
};

StreamReader<std::int64_t> ReaderOf(std::int64_t really, std::int64_t said, Account& account) {
  return {[=, &account](std::int64_t epoch) {
            ++account.opened;
            return std::make_unique<CountingStream>(epoch, really, account);
          },
          said, kReaderSeed};
}

std::vector<std::int64_t> Read(StreamReader<std::int64_t>& reader, const Microbatch& microbatch) {
  const auto read = reader.Read(microbatch);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : std::vector<std::int64_t>{};
}

TEST(StreamReader, ReadsItsSlicesAndPassesOverTheOthersInOneOpening) {
  Account account;
  auto reader = ReaderOf(20, 20, account);
  EXPECT_THAT(Read(reader, {0, {2, 3}}), ElementsAre(1002, 1003, 1004));
  EXPECT_THAT(Read(reader, {0, {5, 1}}), ElementsAre(1005));
  EXPECT_THAT(Read(reader, {0, {10, 2}}), ElementsAre(1010, 1011));
  EXPECT_EQ(account.opened, 1);
  EXPECT_EQ(account.read, 12);
}

TEST(StreamReader, OpensTheStreamAnewToGoBackAndForEachEpoch) {
  Account account;
  auto reader = ReaderOf(20, 20, account);
  EXPECT_THAT(Read(reader, {0, {10, 2}}), ElementsAre(1010, 1011));
  EXPECT_THAT(Read(reader, {0, {6, 2}}), ElementsAre(1006, 1007));
  EXPECT_EQ(account.opened, 2);
  EXPECT_THAT(Read(reader, {1, {0, 2}}), ElementsAre(2000, 2001));
  EXPECT_EQ(account.opened, 3);
}

TEST(StreamReader, SkipsWithoutReadingWhereTheStreamCan) {
  Account account;
  StreamReader<std::int64_t> reader(
      [&](std::int64_t) { return std::make_unique<SeekableStream>(account); }, 1000, kReaderSeed);
  EXPECT_THAT(Read(reader, {0, {500, 2}}), ElementsAre(500, 501));
  EXPECT_THAT(Read(reader, {0, {900, 1}}), ElementsAre(900));
  EXPECT_EQ(account.read, 3);
  EXPECT_EQ(account.skipped, 898);
}

TEST(StreamReader, GivesEachSampleTheSeedThatItsPlaceHas) {
  Account account;
  auto reader = ReaderOf(20, 20, account);
  Read(reader, {0, {0, 2}});
  Read(reader, {1, {0, 1}});
  EXPECT_THAT(account.seeds,
              ElementsAre(SampleSeed(kReaderSeed, 1, 0), SampleSeed(kReaderSeed, 1, 1),
                          SampleSeed(kReaderSeed, 2, 0)));
}

TEST(StreamReader, AStreamThatIsTooShortIsNamedWithWhereItEnded) {
  Account account;
  auto reader = ReaderOf(18, 20, account);
  EXPECT_TRUE(reader.Read({0, {14, 2}}).ok());
  EXPECT_THAT(std::string(reader.Read({0, {16, 4}}).status().message()),
              AllOf(HasSubstr("epoch 1"), HasSubstr("before sample 18"), HasSubstr("want 20")));
  // Also where it ends within what is passed over, and again when asked again.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(std::string(reader.Read({2, {19, 1}}).status().message()),
                AllOf(HasSubstr("epoch 3"), HasSubstr("before sample 19")));
  }
}

TEST(StreamReader, AStreamThatIsTooLongIsFoundByWhoReadsItsEnd) {
  Account account;
  auto reader = ReaderOf(21, 20, account);
  EXPECT_TRUE(reader.Read({0, {14, 5}}).ok());
  EXPECT_THAT(std::string(reader.Read({0, {19, 1}}).status().message()),
              AllOf(HasSubstr("does not end after sample 19"), HasSubstr("want 20")));
}

TEST(StreamReader, NoStreamIsAnError) {
  StreamReader<std::int64_t> reader([](std::int64_t) { return nullptr; }, 20, kReaderSeed);
  EXPECT_THAT(std::string(reader.Read({4, {0, 1}}).status().message()), HasSubstr("epoch 5"));
}

class CountingDataset final : public StreamDataset<std::int64_t, std::int64_t> {
 public:
  CountingDataset(std::int64_t samples, std::optional<std::int64_t> said)
      : samples_(samples), said_(said) {}
  std::optional<std::int64_t> size() const override { return said_; }
  std::unique_ptr<Stream> Open(std::int64_t epoch) const override {
    return std::make_unique<CountingStream>(epoch, samples_, account);
  }
  std::int64_t Collate(std::vector<std::int64_t> examples) const override {
    return std::accumulate(examples.begin(), examples.end(), std::int64_t{0});
  }

  mutable Account account;

 private:
  std::int64_t samples_;
  std::optional<std::int64_t> said_;
};

TEST(SizeOf, CountsTheSamplesOfAStreamThatDoesNotSay) {
  const CountingDataset silent(37, std::nullopt);
  EXPECT_EQ(SizeOf(silent), 37);
  const CountingDataset knowing(37, 50);
  EXPECT_EQ(SizeOf(knowing), 50);
  EXPECT_EQ(knowing.account.read, 0);
}

}  // namespace
}  // namespace espalier
