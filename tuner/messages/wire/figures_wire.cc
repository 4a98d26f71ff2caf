#include "tuner/messages/wire/figures_wire.h"

#include <string>

#include "base/check.h"
#include "google/protobuf/descriptor.h"

namespace espalier {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// nullptr: it is one of the map.
const FieldDescriptor* OwnField(const FigureRow& row, const Message& message) {
  return message.GetDescriptor()->FindFieldByName(std::string(row.name));
}

const FieldDescriptor& MapOf(const Message& message) {
  const FieldDescriptor* map = message.GetDescriptor()->FindFieldByName("figures");
  ESPALIER_CHECK(map != nullptr && map->is_map(), "messages with figures have a map of them");
  return *map;
}

bool IsWhole(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
}

}  // namespace

void SetFigures(const TrainingFigures& figures, Message& message) {
  const auto& to = *message.GetReflection();
  for (const FigureRow& row : kFigureRows) {
    const double value = figures[row.figure];
    if (value == 0) continue;
    if (const FieldDescriptor* own = OwnField(row, message)) {
      IsWhole(*own) ? to.SetInt64(&message, own, figures.Whole(row.figure))
                    : to.SetDouble(&message, own, value);
      continue;
    }
    const FieldDescriptor& map = MapOf(message);
    Message& entry = *to.AddMessage(&message, &map);
    entry.GetReflection()->SetString(&entry, map.message_type()->map_key(), std::string(row.name));
    entry.GetReflection()->SetDouble(&entry, map.message_type()->map_value(), value);
  }
}

TrainingFigures FiguresIn(const Message& message) {
  const auto& from = *message.GetReflection();
  TrainingFigures figures;
  const FieldDescriptor& map = MapOf(message);
  for (int i = 0; i < from.FieldSize(message, &map); ++i) {
    const Message& entry = from.GetRepeatedMessage(message, &map, i);
    const FigureRow* row =
        FindFigure(entry.GetReflection()->GetString(entry, map.message_type()->map_key()));
    if (row == nullptr) continue;
    figures[row->figure] = entry.GetReflection()->GetDouble(entry, map.message_type()->map_value());
  }
  for (const FigureRow& row : kFigureRows) {
    const FieldDescriptor* own = OwnField(row, message);
    if (own == nullptr) continue;
    figures[row.figure] = IsWhole(*own) ? static_cast<double>(from.GetInt64(message, own))
                                        : from.GetDouble(message, own);
  }
  return figures;
}

}  // namespace espalier
