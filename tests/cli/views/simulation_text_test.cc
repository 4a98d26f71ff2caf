#include "tuner/cli/views/simulation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SimulationRun SmallRun(const std::string& policy) {
  SimulationRun run;
  run.policy = policy;
  run.timeline.slots = 2;
  run.timeline.rows = {{"trial 0", 0, -1, "running", 0, {{0, 5, 1, 1}}}};
  run.timeline.decisions = {{1.5, "trial 0", 0, 1, "starts"}, {2, "", 0, 0, "is over"}};
  run.timeline.figures = {
      {"finish_s", 65}, {"slot_use", 0.25}, {"target_s", std::nan("")}, {"resizes", 3}};
  return run;
}

TEST(SimulationText, FiguresSayTheirUnit) {
  EXPECT_EQ(SimulationTable({SmallRun("fixed")}),
            "policy    fixed\nfinish    1m05s\nslot use  25.0 %\ntarget    -\nresizes   3\n");
}

TEST(SimulationText, SeveralRunsAreRows) {
  EXPECT_THAT(SimulationTable({SmallRun("a"), SmallRun("b")}), HasSubstr("\nb       1m05s"));
}

TEST(SimulationText, DecisionsHaveTimeSlotsAndReason) {
  EXPECT_EQ(SimulationDecisions({SmallRun("fixed")}),
            "# policy fixed\n"
            "       1.500 s  trial 0       0 -> 1    starts\n"
            "       2.000 s  -             0 -> 0    is over\n");
}

TEST(SimulationText, JsonHasNoNumberThatJsonLacks) {
  const std::string json = SimulationJson("small", {SmallRun("fixed")});
  EXPECT_THAT(json, HasSubstr("\"target_s\": null"));
  EXPECT_THAT(json, HasSubstr("\"ended_s\": null"));
  EXPECT_THAT(json, HasSubstr("\"simulated\": \"small\""));
}

TEST(SimulationText, JsonSaysWhatIsKnownBeside) {
  SimulationRun run = SmallRun("fixed");
  const std::string plain = SimulationJson("small", {run});
  for (const char* key : {"\"kind\"", "\"remarks\"", "\"recorded\""}) {
    EXPECT_THAT(plain, Not(HasSubstr(key)));
  }
  run.timeline.decisions[0].kind = "start";
  run.remarks = {"2 trials went on"};
  const std::string json = SimulationJson("small", {run}, {{"best", 0.5}, {"finish_s", NAN}});
  EXPECT_THAT(json, HasSubstr("\"kind\": \"start\""));
  EXPECT_THAT(json, HasSubstr("\"2 trials went on\""));
  EXPECT_THAT(json, HasSubstr("\"best\": 0.5"));
  EXPECT_THAT(json, HasSubstr("\"finish_s\": null"));
}

}  // namespace
}  // namespace espalier
