#include "adapters/optuna/dashboard/artifact_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "tests/storage/scratch_folder.h"

namespace espalier::optuna_dashboard {
namespace {

TEST(ArtifactFolder, KeepsWhatIsWrittenUntilItIsRemoved) {
  const ScratchFolder scratch;
  const ArtifactFolder folder(scratch.path());
  const std::string content("a\0b", 3);
  ASSERT_TRUE(folder.Write("12ab-34", content).ok());
  EXPECT_EQ(*folder.Read("12ab-34"), content);
  ASSERT_TRUE(folder.Write("12ab-34", "new").ok());
  EXPECT_EQ(*folder.Read("12ab-34"), "new");
  EXPECT_TRUE(folder.Remove("12ab-34").ok());
  EXPECT_TRUE(absl::IsNotFound(folder.Remove("12ab-34")));
  EXPECT_TRUE(absl::IsNotFound(folder.Read("12ab-34").status()));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "nothing half written is left";
}

TEST(ArtifactFolder, FilesAreForTheUserAloneAndWholeOrNotThere) {
  const ScratchFolder scratch;
  const ArtifactFolder folder(scratch.path());
  const mode_t former = umask(0);
  EXPECT_TRUE(folder.Write("12ab-34", "content").ok());
  umask(former);
  struct stat status {};
  ASSERT_EQ(stat(scratch.File("12ab-34").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  // A folder has the name, so that the content cannot get it.
  std::filesystem::create_directories(scratch.File("56cd/within"));
  const absl::Status refused = folder.Write("56cd", "content");
  EXPECT_TRUE(absl::IsInternal(refused)) << refused;
  EXPECT_FALSE(std::filesystem::exists(scratch.File("56cd.new")));
}

TEST(ArtifactFolder, NoIdLeadsOutOfIt) {
  const ScratchFolder scratch;
  const ArtifactFolder folder(scratch.path());
  for (const std::string& id : {std::string("../x"), std::string("a/b"), std::string(""),
                                std::string("."), std::string(65, 'a'), std::string("a\0", 2)}) {
    EXPECT_TRUE(absl::IsNotFound(folder.Write(id, "x"))) << id;
    EXPECT_TRUE(absl::IsNotFound(folder.Read(id).status())) << id;
    EXPECT_TRUE(absl::IsNotFound(folder.Remove(id))) << id;
  }
}

TEST(ArtifactFolder, WithoutOneEveryCallSaysSo) {
  const ArtifactFolder none("");
  EXPECT_FALSE(none.available());
  EXPECT_TRUE(absl::IsInvalidArgument(none.Write("aa", "x")));
}

TEST(ArtifactFolder, UuidsAreOfVersionFourAndNew) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const std::string id = NewUuid();
    ASSERT_EQ(id.size(), 36u);
    EXPECT_EQ(id[14], '4');
    EXPECT_TRUE(std::string("89ab").find(id[19]) != std::string::npos);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 100u);
}

TEST(ArtifactFolder, TypesByTheNamesEnding) {
  std::string encoding;
  EXPECT_EQ(MimeType("a.PNG", encoding), "image/png");
  EXPECT_EQ(encoding, "");
  EXPECT_EQ(MimeType("log.txt.gz", encoding), "text/plain");
  EXPECT_EQ(encoding, "gzip");
  EXPECT_EQ(MimeType("model", encoding), "application/octet-stream");
}

TEST(ArtifactFolder, DataUris) {
  EXPECT_EQ(*DataOfUri("data:text/plain;base64,aGk="), "hi");
  EXPECT_EQ(*DataOfUri("data:;base64,"), "");
  EXPECT_FALSE(DataOfUri("http://x,aGk=").ok());
  EXPECT_FALSE(DataOfUri("data:text/plain").ok());
  EXPECT_FALSE(DataOfUri("data:;base64,%%").ok());
}

}  // namespace
}  // namespace espalier::optuna_dashboard
