#include "base/json/python_json.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

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

// Hands a document what is read, its numbers as such.
class NumbersRead : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, NumbersRead> {
 public:
  explicit NumbersRead(rapidjson::Document& document) : document_(document) {}

  bool Null() { return document_.Null(); }
  bool Bool(bool value) { return document_.Bool(value); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    const absl::string_view number(text, length);
    std::int64_t whole = 0;
    std::uint64_t large = 0;
    double real = 0;
    if (absl::SimpleAtoi(number, &whole)) return document_.Int64(whole);
    if (absl::SimpleAtoi(number, &large)) return document_.Uint64(large);
    return absl::SimpleAtod(number, &real) && document_.Double(real);
  }
  bool String(const char* text, rapidjson::SizeType length, bool copy) {
    return document_.String(text, length, copy);
  }
  bool StartObject() { return document_.StartObject(); }
  bool Key(const char* text, rapidjson::SizeType length, bool copy) {
    return document_.Key(text, length, copy);
  }
  bool EndObject(rapidjson::SizeType members) { return document_.EndObject(members); }
  bool StartArray() { return document_.StartArray(); }
  bool EndArray(rapidjson::SizeType items) { return document_.EndArray(items); }

 private:
  rapidjson::Document& document_;
};

}  // namespace

rapidjson::ParseResult ParsePythonJson(std::string_view text, rapidjson::Document& document) {
  rapidjson::ParseResult read;
  const auto fill = [&](rapidjson::Document& into) {
    NumbersRead numbers(into);
    read = ReadPythonJson(text, numbers);
    return !read.IsError();
  };
  document.Populate(fill);
  return read;
}

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
