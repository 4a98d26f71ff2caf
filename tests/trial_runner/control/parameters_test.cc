#include "trial_runner/control/parameters.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parameters Parse(const char* json) {
  auto parsed = Parameters::FromJson(json, "test");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

TEST(Parameters, GivesWhatIsThereAndElseTheProgramsOwn) {
  const Parameters p = Parse(R"({"lr": 0.5, "batch_size": 64, "rule": "linear", "bn": true})");
  EXPECT_EQ(*p.Get("lr", 0.1), 0.5);
  EXPECT_EQ(*p.Get("batch_size", std::int64_t{1}), 64);
  EXPECT_EQ(*p.Get("rule", std::string("none")), "linear");
  EXPECT_TRUE(*p.Get("bn", false));
  EXPECT_EQ(*p.Get("width", std::int64_t{8}), 8);
}

TEST(Parameters, IntegersAndWholeRealsServeForEachOther) {
  const Parameters p = Parse(R"({"lr": 1, "batch_size": 64.0})");
  EXPECT_EQ(*p.Get("lr", 0.1), 1.0);
  EXPECT_EQ(*p.Get("batch_size", std::int64_t{1}), 64);
}

TEST(Parameters, WrongTypeNamesParameterAndValue) {
  const Parameters p = Parse(R"({"batch_size": 64.5, "lr": "high"})");
  EXPECT_THAT(p.Get("batch_size", std::int64_t{1}).status().ToString(),
              HasSubstr("parameter \"batch_size\" is 64.5: the program wants an integer"));
  EXPECT_THAT(p.Get("lr", 0.1).status().ToString(), HasSubstr("\"high\""));
}

TEST(Parameters, AssignmentsReplaceAndMayBeText) {
  Parameters p = Parse(R"({"lr": 0.5})");
  EXPECT_TRUE(p.Set("lr=1e-3").ok());
  EXPECT_TRUE(p.Set("rule=linear").ok());
  EXPECT_TRUE(p.Set("log=").ok());
  EXPECT_EQ(*p.Get("lr", 0.1), 1e-3);
  EXPECT_EQ(*p.Get("rule", std::string()), "linear");
  EXPECT_EQ(*p.Get("log", std::string("x")), "");
  EXPECT_FALSE(p.Set("lr").ok());
  EXPECT_FALSE(p.Set("=3").ok());
}

TEST(Parameters, NestedChoicesAreReadByTheirFlatNames) {
  const auto parameters = Parameters::FromJson(
      R"({"opt": {"_name": "sgd", "momentum": 0.9, "decay": {"_name": "cosine", "steps": 7}}})",
      "");
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(*parameters->Get("opt", std::string("adam")), "sgd");
  EXPECT_EQ(*parameters->Get("opt/sgd/momentum", 0.0), 0.9);
  EXPECT_EQ(*parameters->Get("opt/sgd/decay", std::string()), "cosine");
  EXPECT_EQ(*parameters->Get("opt/sgd/decay/cosine/steps", std::int64_t{0}), 7);
  EXPECT_EQ(*parameters->Get("opt/adam/beta1", 0.5), 0.5);
}

TEST(Parameters, NestedValuesAreKeptAsText) {
  const Parameters p = Parse(R"({"layer": {"width": 3}})");
  EXPECT_THAT(*p.Get("layer", std::string()), HasSubstr("width"));
}

TEST(Parameters, NullStaysNullAndIsOfNoOtherType) {
  const Parameters p = Parse(R"({"depth": null, "name": "null", "x": 0.5, "n": 3, "on": true})");
  EXPECT_EQ(p.Json(), R"({"depth":null,"n":3,"name":"null","on":true,"x":0.5})");
  EXPECT_THAT(p.Get("depth", std::int64_t{1}).status().ToString(),
              HasSubstr("parameter \"depth\" is null: the program wants an integer"));
}

TEST(Parameters, WhatIsNoObjectIsRefusedByName) {
  EXPECT_THAT(Parameters::FromJson("[1]", "file.json").status().ToString(), HasSubstr("file.json"));
  EXPECT_FALSE(Parameters::FromJson("{", "file.json").ok());
}

TEST(Parameters, UnusedNamesThoseNeverAskedFor) {
  const Parameters p = Parse(R"({"lr": 0.5, "batchsize": 64})");
  EXPECT_TRUE(p.Get("lr", 0.1).ok());
  EXPECT_TRUE(p.Get("batch_size", std::int64_t{1}).ok());
  EXPECT_THAT(p.Unused(), ElementsAre("batchsize"));
}

}  // namespace
}  // namespace espalier
