#include "tuner/server/log.h"

#include <memory>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace espalier {

void LogToStderr() {
  // spdlog's own default logger has no name and writes to stdout, which belongs to users.
  if (!spdlog::default_logger()->name().empty()) return;
  auto logger =
      std::make_shared<spdlog::logger>("tuner", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::get_level());
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace espalier
