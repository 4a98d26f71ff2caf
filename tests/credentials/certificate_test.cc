#include "tuner/credentials/certificate.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/credentials/own_certificate.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

std::string FreshFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("espalier_" + name);
  fs::remove_all(folder);
  return folder.string();
}

mode_t ModeOf(const std::string& path) {
  struct stat about {};
  stat(path.c_str(), &about);
  return about.st_mode & 0777;
}

TEST(Certificate, HasAHashAndATimeOfItsOwn) {
  const auto one = MakeCertificate();
  const auto other = MakeCertificate();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(CertificateHash(one->pem)->size(), 64u);
  EXPECT_NE(*CertificateHash(one->pem), *CertificateHash(other->pem));
  const auto validity = CertificateValidity(one->pem);
  ASSERT_TRUE(validity.ok());
  EXPECT_LT(validity->from, Now());
  EXPECT_GT(validity->to, After(Now(), 9 * 365 * 86400.0));
  EXPECT_FALSE(CertificateHash("nothing").ok());
  EXPECT_EQ(MomentText(Time{0}), "1970-01-01 00:00 UTC");
}

TEST(OwnCertificate, IsKeptForItsUserAlone) {
  const std::string folder = FreshFolder("own_certificate");
  const auto first = KeepOwnCertificate(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ModeOf(folder), 0700u);
  EXPECT_EQ(ModeOf(first->key_file), 0600u);
  const auto again = KeepOwnCertificate(folder);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->hash, first->hash);
  EXPECT_FALSE(again->replaced);
}

TEST(OwnCertificate, NamesTheFileThatIsNone) {
  const std::string folder = FreshFolder("own_certificate_bad");
  const auto first = KeepOwnCertificate(folder);
  ASSERT_TRUE(first.ok());
  std::ofstream(first->certificate_file, std::ios::trunc) << "not a certificate";
  const auto refused = KeepOwnCertificate(folder);
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr(first->certificate_file));
}

}  // namespace
}  // namespace espalier
