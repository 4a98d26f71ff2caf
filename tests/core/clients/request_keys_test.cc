#include "tuner/core/clients/request_keys.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

Trial WithKey(std::int64_t id, std::int64_t study, const std::string& key,
              const char* attribute = kAskKey) {
  Trial trial;
  trial.id = TrialId(id);
  trial.study = StudyId(study);
  trial.attributes.system[attribute] = RequestKeyJson(key);
  return trial;
}

TEST(RequestKeys, AreOfTheirStudyAndAttribute) {
  RequestKeys keys;
  keys.Take(WithKey(1, 1, "a"));
  keys.Take(WithKey(2, 2, "a"));
  keys.Take(WithKey(3, 1, "a", kCreationKey));
  EXPECT_EQ(keys.Find(StudyId(1), kAskKey, "a"), TrialId(1));
  EXPECT_EQ(keys.Find(StudyId(2), kAskKey, "a"), TrialId(2));
  EXPECT_EQ(keys.Find(StudyId(1), kCreationKey, "a"), TrialId(3));
  EXPECT_FALSE(keys.Find(StudyId(1), kAskKey, "b"));
}

TEST(RequestKeys, TheFirstTrialOfAKeyStands) {
  RequestKeys keys;
  keys.Take(WithKey(1, 1, "a"));
  keys.Take(WithKey(2, 1, "a"));
  EXPECT_EQ(keys.Find(StudyId(1), kAskKey, "a"), TrialId(1));
}

TEST(RequestKeys, ForgetTheOldestAndDeletedStudies) {
  RequestKeys keys(2);
  for (int i = 1; i <= 3; ++i) keys.Take(WithKey(i, i, "k"));
  EXPECT_FALSE(keys.Find(StudyId(1), kAskKey, "k"));
  EXPECT_TRUE(keys.Find(StudyId(2), kAskKey, "k"));
  keys.Forget(StudyId(2));
  EXPECT_FALSE(keys.Find(StudyId(2), kAskKey, "k"));
  keys.Take(WithKey(4, 4, "k"));
  EXPECT_TRUE(keys.Find(StudyId(3), kAskKey, "k")) << "what is forgotten takes no room";
}

}  // namespace
}  // namespace espalier
