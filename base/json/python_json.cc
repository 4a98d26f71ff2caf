#include "base/json/python_json.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <vector>

namespace espalier {

namespace {

using PythonWriter =
    rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                      rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>;

// A list or an object that is being written.
struct OpenValue {
  const rapidjson::Value* value;
  rapidjson::SizeType next = 0;  // of its items
};

rapidjson::SizeType ItemsOf(const rapidjson::Value& value) {
  return value.IsArray() ? value.Size() : value.MemberCount();
}

// The next item of the innermost, after its key.
const rapidjson::Value& NextItem(OpenValue& inner, PythonWriter& writer) {
  if (inner.value->IsArray()) return (*inner.value)[inner.next++];
  const auto member = inner.value->MemberBegin() + inner.next++;
  writer.Key(member->name.GetString(), member->name.GetStringLength());
  return member->value;
}

void Close(const OpenValue& inner, PythonWriter& writer) {
  if (inner.value->IsArray()) {
    writer.EndArray();
  } else {
    writer.EndObject();
  }
}

}  // namespace

std::string PythonJson(const rapidjson::Value& value) {
  rapidjson::StringBuffer text;
  PythonWriter writer(text);
  std::vector<OpenValue> open;
  const auto write = [&](const rapidjson::Value& item) {
    if (item.IsArray()) {
      writer.StartArray();
    } else if (item.IsObject()) {
      writer.StartObject();
    } else {
      item.Accept(writer);
      return;
    }
    open.push_back({&item});
  };
  write(value);
  while (!open.empty()) {
    if (open.back().next < ItemsOf(*open.back().value)) {
      write(NextItem(open.back(), writer));
    } else {
      Close(open.back(), writer);
      open.pop_back();
    }
  }
  return {text.GetString(), text.GetSize()};
}

}  // namespace espalier
