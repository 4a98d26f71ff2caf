#pragma once

#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trial_runner/control/replica_harness.h"

namespace espalier {

inline constexpr int kLook_ms = 2;  // how often the record is looked at while waiting for it

struct Attempt {
  std::int64_t epoch = 0;
  std::multiset<std::int64_t> samples;
  std::int64_t microbatches = 0;  // of all replicas
};

// Runs elastic_probe as real processes and reads what they write down.
class ElasticTraining : public ::testing::Test {
 protected:
  using Said = ReplicaHarness::Said;
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "espalier-elastic-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A folder for one run's record.
  std::string NewRun(const std::string& name) const {
    const std::filesystem::path run = folder_ / name;
    std::filesystem::create_directories(run / "checkpoints");
    return run.string();
  }

  std::unique_ptr<ReplicaHarness> Harness(const std::string& run,
                                          const std::vector<std::string>& parameters,
                                          std::map<std::string, std::string> environment = {}) {
    // On another machine than it was built on it is elsewhere; and another program may take its
    // place.
    const char* named = std::getenv("ELASTIC_PROBE");
    const char* interpreter = std::getenv("ELASTIC_PROBE_INTERPRETER");
    std::vector<std::string> command{named != nullptr ? named : ELASTIC_PROBE};
    if (interpreter != nullptr) command.insert(command.begin(), interpreter);
    for (const std::string& parameter : parameters) {
      command.insert(command.end(), {"--set", parameter});
    }
    command.insert(command.end(), {"--set", "log=" + run});
    environment.emplace("ESPALIER_CHECKPOINT_DIR", run + "/checkpoints");
    environment.emplace("ESPALIER_TRIAL_NUMBER", "3");
    return std::make_unique<ReplicaHarness>(std::move(command), std::move(environment));
  }

  // Trains on one group of `replicas` to the end of the program.
  std::unique_ptr<ReplicaHarness> TrainToTheEnd(const std::string& run,
                                                const std::vector<std::string>& parameters,
                                                int replicas) {
    auto harness = Harness(run, parameters);
    std::vector<std::int64_t> all;
    for (int i = 0; i < replicas; ++i) all.push_back(harness->Start());
    for (const std::int64_t id : all) harness->AwaitReady(id);
    harness->Regroup(all);
    harness->AwaitMessage("the end", IsFinished);
    for (const std::int64_t id : all) exit_codes_.push_back(harness->AwaitExit(id));
    return harness;
  }

  // The samples of each optimizer step, of the attempt that counted: the one in the highest
  // generation, since an attempt that succeeded anywhere is never repeated.
  static std::map<std::int64_t, Attempt> Steps(const std::string& run) {
    std::map<std::int64_t, std::map<std::int64_t, Attempt>> attempts;
    for (const auto& file : std::filesystem::directory_iterator(run)) {
      if (!file.is_regular_file() || file.path().filename().string().starts_with("parameters") ||
          file.path().filename() == "stop") {
        continue;
      }
      std::ifstream in(file.path());
      for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::int64_t generation = 0;
        std::int64_t epoch = 0;
        std::int64_t step = 0;
        words >> generation >> epoch >> step;
        Attempt& attempt = attempts[step][generation];
        attempt.epoch = epoch;
        ++attempt.microbatches;
        for (std::int64_t sample = 0; words >> sample;) attempt.samples.insert(sample);
      }
    }
    std::map<std::int64_t, Attempt> counted;
    for (auto& [step, by_generation] : attempts) counted[step] = by_generation.rbegin()->second;
    return counted;
  }

  // The program trains to the end of its epoch and no further.
  static void Stop(const std::string& run) { std::ofstream(run + "/stop") << "stop"; }

  // Each epoch has dealt each sample exactly once, and steps are numbered without gap. Returns the
  // number of epochs.
  static std::int64_t ExpectEachSampleOnceAnEpoch(const std::string& run, std::int64_t samples) {
    const std::map<std::int64_t, Attempt> steps = Steps(run);
    std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    std::map<std::int64_t, std::multiset<std::int64_t>> dealt;
    std::int64_t next = 1;
    for (const auto& [step, attempt] : steps) {
      EXPECT_EQ(step, next++);
      dealt[attempt.epoch].insert(attempt.samples.begin(), attempt.samples.end());
    }
    EXPECT_FALSE(dealt.empty());
    for (const auto& [epoch, seen] : dealt) {
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), all.begin(), all.end()))
          << "epoch " << epoch << " dealt " << seen.size() << " samples";
    }
    return static_cast<std::int64_t>(dealt.size());
  }

  static std::vector<double> FinalParameters(const std::string& run,
                                             const std::string& file = "parameters") {
    std::ifstream in(run + "/" + file);
    std::vector<double> values;
    for (double v = 0; in >> v;) values.push_back(v);
    EXPECT_FALSE(values.empty()) << "no parameters in " << run;
    return values;
  }

  // Reported metric by step, as the service would keep it: the first word counts.
  static std::map<std::int64_t, double> Reports(ReplicaHarness& harness) {
    std::map<std::int64_t, double> reports;
    for (const Said& said : harness.EverythingSaid()) {
      if (const auto* report = std::get_if<ReplicaReport>(&said.message)) {
        reports.emplace(report->step, report->value);
      }
    }
    return reports;
  }

  // How many steps were reported, if those are 1, 2, 3, ...
  static std::int64_t ReportedSteps(ReplicaHarness& harness) {
    const auto reports = Reports(harness);
    const auto count = static_cast<std::int64_t>(reports.size());
    EXPECT_TRUE(reports.empty() || reports.rbegin()->first == count) << "a report is missing";
    return count;
  }

  // More than one epoch passes, so that the loop of a parked spare lags behind by whole ones; then
  // it trains with `other` again. Its new number.
  static std::int64_t ComeBackEpochsLater(ReplicaHarness& harness, std::int64_t other,
                                          std::int64_t spare) {
    const auto before = ReportedSteps(harness);
    harness.AwaitMessage("two epochs without the spare", [before](const Said& said) {
      const auto* report = std::get_if<ReplicaReport>(&said.message);
      return report != nullptr && report->step == before + 3;
    });
    const auto back = harness.Adopt(spare, "");
    harness.AwaitReady(back);
    harness.Regroup({other, back});
    harness.AwaitRegrouped({other});
    return back;
  }

  static bool IsFinished(const Said& said) {
    return std::holds_alternative<ReplicaFinished>(said.message);
  }

  // Waits until the newest record of the run shows this many steps begun.
  static void AwaitSteps(const std::string& run, std::int64_t count) {
    const auto patience = std::chrono::steady_clock::now() + ReplicaHarness::kPatience;
    while (true) {
      const auto steps = Steps(run);
      if (!steps.empty() && steps.rbegin()->first >= count) return;
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "no step " << count;
      poll(nullptr, 0, kLook_ms);
    }
  }

  static void AwaitFiles(const std::filesystem::path& folder, std::ptrdiff_t count) {
    const auto patience = std::chrono::steady_clock::now() + ReplicaHarness::kPatience;
    while (std::distance(begin(std::filesystem::directory_iterator(folder)),
                         end(std::filesystem::directory_iterator())) < count) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "in " << folder;
      poll(nullptr, 0, kLook_ms);
    }
  }

  std::filesystem::path folder_;
  std::vector<int> exit_codes_;  // of what TrainToTheEnd has trained
};

inline void ExpectClose(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-4) << "parameter " << i;
}

}  // namespace espalier
