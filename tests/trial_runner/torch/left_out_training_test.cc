// Steps that one replica leaves out, and what is drawn between steps, in real processes.

#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

class LeftOut : public ElasticTraining {
 protected:
  // What each of so many replicas comes to, by rank.
  std::vector<std::vector<double>> Train(const std::string& name,
                                         const std::vector<std::string>& parameters, int replicas) {
    const std::string run = NewRun(name);
    TrainToTheEnd(run, parameters, replicas);
    for (const int code : exit_codes_) EXPECT_EQ(code, 0);
    std::vector<std::vector<double>> come_to;
    for (int rank = 0; rank < replicas; ++rank) {
      come_to.push_back(FinalParameters(run, "parameters-" + std::to_string(rank)));
    }
    return come_to;
  }
};

// The last replica leaves them out; alone it is the only one. Where batches come whole, the rate
// follows a state of the program's that counts them.
TEST_F(LeftOut, StepsAreLeftOutByAll) {
  for (const std::string most : {"0", "4"}) {
    SCOPED_TRACE(most);
    std::vector<std::string> parameters{"samples=60", "batch_size=12",     "epochs=6",
                                        "lr=0.01",    "leaves_out=3",      "all_parameters=true",
                                        "sums=true",  "max_atomic=" + most};
    if (most == "0") parameters.emplace_back("schedule=batch");
    const auto alone = Train("one-" + most, parameters, 1);
    const auto together = Train("three-" + most, parameters, 3);
    for (const std::vector<double>& of_rank : together) {
      EXPECT_EQ(of_rank, together.front()) << "bit by bit";
      ExpectClose(of_rank, alone.front());
    }
  }
}

TEST_F(LeftOut, WhatIsDrawnBetweenStepsIsTheSameOnAll) {
  const std::vector<std::string> parameters{
      "samples=60",  "batch_size=12",       "epochs=3",     "lr=0.01", "drawn=true",
      "dropout=0.3", "all_parameters=true", "evaluations=2"};
  const auto together = Train("three", parameters, 3);
  for (const std::vector<double>& of_rank : together) EXPECT_EQ(of_rank, together.front());
}

}  // namespace
}  // namespace espalier
