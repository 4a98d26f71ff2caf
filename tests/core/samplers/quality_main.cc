// Prints the median best value of each sampler on each test function:
//   sampler_quality [TRIALS [SEEDS [SAMPLER [OPTION=VALUE...]]]]

#include <cstdio>
#include <cstdlib>

#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/sampler.h"

int main(int argc, char** argv) {
  const int trials = argc > 1 ? std::atoi(argv[1]) : 100;
  const int seeds = argc > 2 ? std::atoi(argv[2]) : 10;
  std::vector<std::string> samplers = {"random", "tpe"};
  if (argc > 3) samplers = {argv[3]};
  espalier::Options options;
  for (int i = 4; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      options[text.substr(0, equals)] = std::atof(text.c_str() + equals + 1);
    }
  }
  for (const std::string& sampler : samplers) {
    if (const auto made = espalier::MakeSampler(sampler, options); !made.ok()) {
      std::fprintf(stderr, "%s\n", std::string(made.status().message()).c_str());
      return 2;
    }
    for (const auto& function : espalier::testing::TestFunctions()) {
      std::printf("%-8s %-12s %.4g (optimum %.4g)\n", sampler.c_str(), function.name.c_str(),
                  espalier::testing::MedianBest(sampler, options, function, trials, seeds),
                  function.optimum);
      std::fflush(stdout);
    }
  }
  return 0;
}
