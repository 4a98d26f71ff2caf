#include "trial_runner/agent/output_watch.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/protocol.h"

namespace espalier {
namespace {

constexpr std::size_t kChunk_bytes = std::size_t{64} << 10;
constexpr int kChunksPerLook = 32;

void AddReports(std::vector<v1::Report> reports, std::vector<v1::ReplicaMessage>& messages) {
  for (v1::Report& report : reports) *messages.emplace_back().mutable_report() = std::move(report);
}

}  // namespace

OutputWatch::OutputWatch(MetricReader reader, FileDescriptor log, bool has_values)
    : reader_(std::move(reader)), log_(std::move(log)), has_values_(has_values) {}

std::unique_ptr<OutputWatch> OutputWatch::Of(const v1::StartReplica& start,
                                             const std::string& log_path) {
  if (!start.has_output_metric() || start.joins() > 0) return nullptr;
  absl::StatusOr<MetricReader> reader = MetricReader::Make(start.output_metric());
  FileDescriptor log(open(log_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reader.ok() || !log.open()) {
    // The service has compiled the pattern too.
    spdlog::warn("trial {} of study {}: its output is not read for values: {}",
                 start.trial_number(), start.study(),
                 reader.ok() ? "cannot open " + log_path : std::string(reader.status().message()));
    return nullptr;
  }
  return std::unique_ptr<OutputWatch>(new OutputWatch(
      *std::move(reader), std::move(log), start.environment().contains(kLastStepVariable)));
}

std::unique_ptr<OutputWatch> OutputWatch::Of(const v1::HandedReplica& handed) {
  if (!handed.has_output()) return nullptr;
  std::unique_ptr<OutputWatch> watch = Of(handed.start(), handed.log_path());
  if (watch == nullptr) return nullptr;
  watch->reader_.TakeOver(handed.output());
  watch->at_ = handed.output().at();
  watch->program_speaks_ = handed.output().program_speaks();
  return watch;
}

v1::HandedOutput OutputWatch::HandOver() const {
  v1::HandedOutput handed;
  reader_.HandOver(handed);
  handed.set_at(at_);
  handed.set_program_speaks(program_speaks_);
  return handed;
}

std::vector<v1::ReplicaMessage> OutputWatch::Look(HowMuch much) {
  std::vector<v1::ReplicaMessage> messages;
  std::array<char, kChunk_bytes> chunk;
  for (int i = 0; much == HowMuch::kAll || i < kChunksPerLook; ++i) {
    const ssize_t got = pread(log_.get(), chunk.data(), chunk.size(), at_);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    at_ += got;
    AddReports(reader_.Take({chunk.data(), static_cast<std::size_t>(got)}), messages);
  }
  return messages;
}

std::vector<v1::ReplicaMessage> OutputWatch::End(bool well) {
  std::vector<v1::ReplicaMessage> messages = Look(HowMuch::kAll);
  AddReports(reader_.End(), messages);
  if (well && !reader_.found() && !has_values_ && !program_speaks_) {
    messages.emplace_back().mutable_finished()->set_failure(reader_.WhyNone());
  }
  return messages;
}

bool OutputWatch::IsLongerThan(std::int64_t bytes) const {
  struct stat status {};
  return fstat(log_.get(), &status) == 0 && status.st_size > bytes;
}

void OutputWatch::Cut(const LogCut& cut) {
  if (at_ > cut.at) at_ = std::max(cut.at, at_ - cut.bytes);
}

}  // namespace espalier
