#include "tuner/server/disk_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/running_service.h"
#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DiskWatch, TellsWhileThereIsLessThanTheReserve) {
  std::optional<std::int64_t> free = std::int64_t{256} << 20;
  DiskWatch watch("/data/pool.db", std::int64_t{256} << 20, [&](const std::string& folder) {
    EXPECT_EQ(folder, "/data");
    return free;
  });
  EXPECT_THAT(watch.Troubles(TimeFromSeconds(0)), IsEmpty());
  free = std::int64_t{12} << 20;
  EXPECT_THAT(watch.Troubles(TimeFromSeconds(1)), IsEmpty()) << "it does not look each time";
  EXPECT_THAT(watch.Troubles(TimeFromSeconds(2)),
              ElementsAre(HasSubstr("/data, has 12 MiB free, less than 256 MiB")));
  EXPECT_THAT(watch.Troubles(TimeFromSeconds(3)), ElementsAre(HasSubstr("12 MiB free")));
  free.reset();  // nobody knows
  EXPECT_THAT(watch.Troubles(TimeFromSeconds(4)), IsEmpty());
}

TEST(DiskWatch, IsShownWithThePool) {
  const ScratchFolder folder;
  ServiceOptions options;
  options.database = folder.File("tuner.db");
  options.disk_reserve_bytes = std::int64_t{1} << 60;
  RunningService running(options);
  grpc::ClientContext context;
  v1::Pool pool;
  ASSERT_TRUE(running.stub->GetPool(&context, {}, &pool).ok());
  EXPECT_THAT(pool.warnings(),
              ElementsAre(HasSubstr("the disk of the database, " + folder.path())));
}

}  // namespace
}  // namespace espalier
