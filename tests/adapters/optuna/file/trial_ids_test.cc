#include "adapters/optuna/file/trial_ids.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

using Texts = std::map<std::string, std::string>;

Texts Followed(Texts attributes) {
  FollowTrialIds({{17, 170}, {19, 190}, {3, 30}}, attributes);
  return attributes;
}

TEST(FollowTrialIds, InKeysOfTheDashboard) {
  EXPECT_EQ(Followed({{"dashboard:17:note_ver", "3"},
                      {"dashboard:19:note_str:0", "\"see 17\""},
                      {"dashboard:artifacts:3:uuid", "{}"}}),
            (Texts{{"dashboard:170:note_ver", "3"},
                   {"dashboard:190:note_str:0", "\"see 17\""},
                   {"dashboard:artifacts:30:uuid", "{}"}}));
}

TEST(FollowTrialIds, InParentsOfAGeneration) {
  EXPECT_EQ(Followed({{"NSGAIISampler:parent:3", "[17, 19,3]"}}),
            (Texts{{"NSGAIISampler:parent:3", "[170, 190,30]"}}));
}

TEST(FollowTrialIds, LeavesAllElseAlone) {
  const Texts others = {{"dashboard:note_ver", "17"},
                        {"dashboard:note_str:3", "\"17\""},
                        {"dashboard:artifacts:uuid-17", "17"},
                        {"dashboard:17", "1"},
                        {"dashboard:4:note_ver", "of a trial that is not there"},
                        {"x:parent:3", "[17]"},
                        {"NSGAIISampler:parent:1", "[4, 99999999999999999999]"},
                        {"NSGAIISampler:parent:2", "{\"17\": 17}"},
                        {"study:metric_names", "[\"17\"]"}};
  EXPECT_EQ(Followed(others), others);
}

}  // namespace
}  // namespace espalier
