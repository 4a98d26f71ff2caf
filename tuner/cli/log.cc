#include "tuner/cli/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <utility>

namespace espalier {
namespace {

constexpr const char* kPattern = "time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v";

void Install(std::shared_ptr<spdlog::logger> logger, spdlog::level::level_enum level) {
  logger->set_pattern(kPattern, spdlog::pattern_time_type::utc);
  logger->set_level(level);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace

void SetUpLog(const std::string& level) {
  Install(
      std::make_shared<spdlog::logger>("tuner", std::make_shared<spdlog::sinks::stderr_sink_mt>()),
      spdlog::level::from_str(level));
}

absl::Status LogToFile(const std::string& path) {
  const spdlog::level::level_enum level = spdlog::default_logger()->level();
  try {
    Install(std::make_shared<spdlog::logger>(
                "tuner", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path)),
            level);
    // A reader that follows the file sees lines soon, without one write for each.
    spdlog::flush_every(std::chrono::seconds(1));
  } catch (const spdlog::spdlog_ex& error) {
    return absl::InvalidArgumentError("cannot write the log \"" + path + "\": " + error.what());
  }
  return absl::OkStatus();
}

}  // namespace espalier
