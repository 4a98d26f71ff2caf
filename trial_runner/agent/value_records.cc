#include "trial_runner/agent/value_records.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json/metric_line.h"
#include "base/patterns/output_pattern.h"
#include "base/shortened.h"
#include "tensorboard.pb.h"
#include "trial_runner/agent/last_output.h"

namespace espalier {
namespace {

constexpr std::size_t kMostNames = 12;
constexpr std::size_t kName_bytes = 80;
constexpr char kUsualStep[] = "step";

// ---- TFRecords: tensorflow/core/lib/io/record_writer.h

constexpr std::size_t kLengthAndCheck = 12;
constexpr std::size_t kCheck = 4;

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
    table[byte] = crc;
  }
  return table;
}

// CRC-32C (Castagnoli), masked as records have it.
std::uint32_t MaskedCrc(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = MakeCrcTable();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <typename Number>
Number LittleEndian(std::string_view bytes) {
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// A scalar of the kinds in which programs write losses.
std::optional<double> ScalarIn(const tensorboard::Tensor& tensor) {
  enum : std::int32_t { kFloat = 1, kDouble = 2 };
  const std::string& content = tensor.content();
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  if (tensor.double_val_size() == 1) return tensor.double_val(0);
  if (tensor.dtype() == kFloat && content.size() == sizeof(float)) {
    float number = 0;
    std::memcpy(&number, content.data(), sizeof number);
    return number;
  }
  if (tensor.dtype() == kDouble && content.size() == sizeof(double)) {
    double number = 0;
    std::memcpy(&number, content.data(), sizeof number);
    return number;
  }
  return std::nullopt;
}

std::optional<double> ScalarIn(const tensorboard::Value& value) {
  if (value.has_simple_value()) return value.simple_value();
  if (value.has_tensor()) return ScalarIn(value.tensor());
  return std::nullopt;
}

}  // namespace

void ValueRecords::GoOn(bool found, std::int64_t counted) {
  found_ = found;
  counted_ = counted;
}

v1::Report& ValueRecords::Report(std::optional<std::int64_t> step, double value,
                                 std::vector<v1::Report>& reports) {
  found_ = true;
  v1::Report& report = reports.emplace_back();
  report.set_step(step ? *step : ++counted_);
  report.set_value(value);
  return report;
}

void ValueRecords::NoteName(const std::string& name) {
  if (found_ || names_.size() > kMostNames) return;
  const std::string shown = absl::StrCat("\"", Shortened(ValidUtf8(name), kName_bytes), "\"");
  if (std::ranges::find(names_, shown) == names_.end()) names_.push_back(shown);
}

std::string ValueRecords::WhatElse() const {
  std::string text;
  if (!names_.empty()) {
    const bool more = names_.size() > kMostNames;
    const auto end =
        names_.begin() + static_cast<std::ptrdiff_t>(more ? kMostNames : names_.size());
    absl::StrAppend(&text, "there is ", absl::StrJoin(names_.begin(), end, ", "),
                    more ? " and more" : "");
  }
  if (!trouble_.empty()) absl::StrAppend(&text, text.empty() ? "" : "; ", trouble_);
  if (passed_over_ > 0) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", passed_over_, " were longer than ",
                    kMaxRecord_bytes >> 10, " KiB and passed over");
  }
  return text;
}

std::size_t ValueRecords::TakeLines(std::string_view bytes, bool ends,
                                    std::vector<v1::Report>& reports) {
  std::size_t done = 0;
  while (true) {
    const std::size_t end = bytes.find('\n', done);
    if (end == bytes.npos) break;
    TakeLine(bytes.substr(done, end - done), reports);
    done = end + 1;
  }
  if (done == 0 && bytes.size() >= kMaxRecord_bytes) {
    ++passed_over_;
    return bytes.size();
  }
  if (!ends) return done;
  TakeLine(bytes.substr(done), reports);
  return bytes.size();
}

void ValueRecords::TakeLine(std::string_view line, std::vector<v1::Report>& reports) {
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  const MetricLine read = ReadMetricLine(
      line, metric_.value(), metric_.step().empty() ? std::string_view(kUsualStep) : metric_.step(),
      figures_);
  if (read.value) {
    Report(read.step, *read.value, reports)
        .mutable_extra()
        ->insert(read.figures.begin(), read.figures.end());
    return;
  }
  for (const std::string& name : read.names) NoteName(name);
  if (!trouble_.empty()) return;
  if (!read.is_object) {
    trouble_ = absl::StrCat("what is no JSON object: \"",
                            Shortened(ValidUtf8(std::string(line)), kName_bytes), "\"");
  } else if (!read.no_number.empty()) {
    trouble_ = absl::StrCat("\"", metric_.value(),
                            "\" is no number: ", Shortened(read.no_number, kName_bytes));
  }
}

std::size_t ValueRecords::TakeEvents(std::string_view bytes, std::size_t left,
                                     std::vector<v1::Report>& reports) {
  std::size_t done = 0;
  while (bytes.size() - done >= kLengthAndCheck) {
    const std::string_view head = bytes.substr(done, kLengthAndCheck);
    const auto length = LittleEndian<std::uint64_t>(head);
    if (LittleEndian<std::uint32_t>(head.substr(8)) != MaskedCrc(head.substr(0, 8))) {
      if (trouble_.empty()) trouble_ = "a file has what is no record of events";
      return left;
    }
    if (length > left || kLengthAndCheck + length + kCheck > left - done) return done;
    const auto whole = static_cast<std::size_t>(kLengthAndCheck + length + kCheck);
    if (whole > bytes.size() - done) {
      // It is there, and not in this piece.
      if (done > 0) return done;
      ++passed_over_;
      return whole;
    }
    const std::string_view data =
        bytes.substr(done + kLengthAndCheck, whole - kLengthAndCheck - kCheck);
    if (LittleEndian<std::uint32_t>(bytes.substr(done + whole - kCheck)) == MaskedCrc(data)) {
      TakeEvent(data, reports);
    } else if (left - done == whole) {
      return done;  // its bytes may still be on their way
    } else if (trouble_.empty()) {
      trouble_ = "a file has a damaged record";
    }
    done += whole;
  }
  return done;
}

void ValueRecords::TakeEvent(std::string_view bytes, std::vector<v1::Report>& reports) {
  tensorboard::Event event;
  if (!event.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  for (const tensorboard::Value& value : event.summary().value()) {
    const std::optional<double> number = ScalarIn(value);
    if (!number || value.tag() != metric_.tag()) {
      if (number) NoteName(value.tag());
      continue;
    }
    const bool has_step = event.step() >= 0 && event.step() <= kMaxOutputStep;
    Report(has_step ? std::optional(event.step()) : std::nullopt, *number, reports);
  }
}

}  // namespace espalier
