#include "tuner/server/http/http_packing.h"


#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/patient_client.h"
#include "tests/server/running_service.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/web/assets/unpacked.h"

namespace espalier {
namespace {

TEST(HttpPacking, TakesTheBestThatIsAccepted) {
  EXPECT_EQ(AcceptedPacking(""), Packing::kNone);
  EXPECT_EQ(AcceptedPacking("identity"), Packing::kNone);
  EXPECT_EQ(AcceptedPacking("gzip, deflate"), Packing::kGzip);
  EXPECT_EQ(AcceptedPacking("gzip, deflate, br, zstd"), Packing::kBrotli);
  EXPECT_EQ(AcceptedPacking("BR;q=1.0, gzip"), Packing::kBrotli);
  EXPECT_EQ(AcceptedPacking("br;q=0, gzip;q=0.5"), Packing::kGzip);
  EXPECT_EQ(AcceptedPacking("gzip; q=0"), Packing::kNone);
  EXPECT_EQ(AcceptedPacking("abr, sgzip"), Packing::kNone);
}

TEST(HttpPacking, UnpacksWhatItHasPacked) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i * 7919) + ",";
  const auto packed = PackGzip(text);
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), text.size() / 2);
  EXPECT_EQ(UnpackGzip(*packed), text);
  EXPECT_EQ(UnpackGzip(packed->substr(0, packed->size() / 2)), std::nullopt);
  EXPECT_EQ(UnpackGzip("no such text"), std::nullopt);
}

// The library's own packing would take seconds for a large answer, and gives other bytes.
TEST(HttpPacking, AnswersArePackedAsFastAsCanBe) {
  RunningService running;
  PatientClient client(running.http_port());
  client.set_decompress(false);
  const std::string text(OpenApiText());
  ASSERT_GT(text.size(), kMinPackedBytes);
  const auto get = [&](const std::string& accepted) {
    return client.Get("/api/openapi.json", {{"Accept-Encoding", accepted}});
  };
  const auto plain = get("identity");
  EXPECT_EQ(plain->get_header_value("Content-Encoding"), "");
  EXPECT_EQ(plain->body, text);
  EXPECT_EQ(plain->get_header_value("Vary"), "Accept-Encoding");
  const auto brotli = get("gzip, deflate, br");
  EXPECT_EQ(brotli->get_header_value("Content-Encoding"), "br");
  EXPECT_EQ(brotli->get_header_value_count("Content-Length"), 1u);
  EXPECT_EQ(brotli->body, PackBrotli(text));
  const auto gzip = get("gzip");
  EXPECT_EQ(gzip->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(gzip->body, PackGzip(text));
  // Small ones are not worth it.
  const auto small = client.Get("/api/studies", {{"Accept-Encoding", "gzip, br"}});
  EXPECT_EQ(small->get_header_value("Content-Encoding"), "");
}

}  // namespace
}  // namespace espalier
