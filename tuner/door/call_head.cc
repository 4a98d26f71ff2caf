#include "tuner/door/call_head.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

// RFC 7541, appendix A: the names of its 61 fields. No value of theirs is of interest but paths'.
constexpr std::array<std::string_view, 61> kStaticNames = {
    ":authority",
    ":method",
    ":method",
    ":path",
    ":path",
    ":scheme",
    ":scheme",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
};
constexpr std::size_t kRootPath = 4;  // index of ":path: /"
constexpr std::size_t kTableBytes = 4096;
constexpr std::size_t kEntryBytes = 32;  // that an entry of the table counts besides its texts
constexpr std::uint64_t kMaxInteger = 1 << 24;

// Appendix B: how many bits the code of each byte has, and of the end (256). The code is canonical:
// codes of one length follow one another by their symbols, shorter ones come first.
constexpr std::array<std::uint8_t, 257> kBits = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30};
constexpr std::size_t kMaxBits = 30;
constexpr std::uint16_t kEnd = 256;

// The canonical code: of each length the first code, how many there are, and where they begin among
// all symbols in order.
struct Huffman {
  std::array<std::uint32_t, kMaxBits + 1> first{};
  std::array<std::uint32_t, kMaxBits + 1> count{};
  std::array<std::uint32_t, kMaxBits + 1> begin{};
  std::array<std::uint16_t, kBits.size()> symbols{};
};

constexpr Huffman MakeHuffman() {
  Huffman made;
  for (const std::uint8_t bits : kBits) ++made.count[bits];
  std::uint32_t code = 0;
  std::uint32_t place = 0;
  for (std::size_t bits = 1; bits <= kMaxBits; ++bits) {
    code <<= 1;
    made.first[bits] = code;
    made.begin[bits] = place;
    for (std::size_t symbol = 0; symbol < kBits.size(); ++symbol) {
      if (kBits[symbol] == bits) made.symbols[place++] = static_cast<std::uint16_t>(symbol);
    }
    code += made.count[bits];
  }
  return made;
}
constexpr Huffman kHuffman = MakeHuffman();

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("malformed header block: ", std::string(what), " (RFC 7541)"));
}

absl::StatusOr<std::string> Unpack(std::string_view packed) {
  std::string text;
  std::uint32_t code = 0;
  std::size_t bits = 0;
  for (const char packed_byte : packed) {
    const auto byte = static_cast<std::uint8_t>(packed_byte);
    for (int bit = 7; bit >= 0; --bit) {
      code = code << 1 | (byte >> bit & 1U);
      if (++bits > kMaxBits) return Malformed("a code of more than 30 bits");
      const std::uint32_t at = code - kHuffman.first[bits];
      if (code < kHuffman.first[bits] || at >= kHuffman.count[bits]) continue;
      const std::uint16_t symbol = kHuffman.symbols[kHuffman.begin[bits] + at];
      if (symbol == kEnd) return Malformed("a text that holds its end");
      text.push_back(static_cast<char>(symbol));
      code = 0;
      bits = 0;
    }
  }
  // What is left fills the last byte with ones.
  if (bits > 7 || code != (1U << bits) - 1) return Malformed("a text that ends within a code");
  return text;
}

struct Field {
  std::string name;
  std::string value;

  std::size_t bytes() const { return name.size() + value.size() + kEntryBytes; }
};

class BlockReader {
 public:
  explicit BlockReader(std::string_view block) : left_(block) {}

  absl::StatusOr<CallHead> Read() {
    CallHead head;
    while (!left_.empty()) {
      if ((First() & 0xe0U) == 0x20U) {
        ESPALIER_RETURN_IF_ERROR(Resize());
        continue;
      }
      ESPALIER_ASSIGN_OR_RETURN(Field field, Next());
      if (field.name == ":path") head.path = field.value;
      if (field.name == "authorization") head.authorizations.push_back(field.value);
    }
    return head;
  }

 private:
  std::uint8_t First() const { return static_cast<std::uint8_t>(left_.front()); }

  // 5.1: in the last `bits` of the first byte and, as far as it does not fit, in those that follow.
  absl::StatusOr<std::uint64_t> Integer(int bits) {
    if (left_.empty()) return Malformed("it ends before a number");
    const std::uint64_t most = (1U << bits) - 1;
    std::uint64_t number = First() & most;
    left_.remove_prefix(1);
    if (number < most) return number;
    for (int shift = 0; shift <= 21; shift += 7) {
      if (left_.empty()) return Malformed("it ends within a number");
      const std::uint64_t byte = First();
      left_.remove_prefix(1);
      number += (byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) {
        if (number <= kMaxInteger) return number;
        break;
      }
    }
    return Malformed("a number that is too large");
  }

  absl::StatusOr<std::string> Text() {
    const bool packed = !left_.empty() && (First() & 0x80U) != 0;
    ESPALIER_ASSIGN_OR_RETURN(const std::uint64_t size, Integer(7));
    if (size > left_.size()) return Malformed("it ends within a text");
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(size);
    return packed ? Unpack(text) : absl::StatusOr<std::string>(text);
  }

  absl::StatusOr<Field> At(std::uint64_t index) const {
    if (index == 0) return Malformed("a field without a number");
    if (index <= kStaticNames.size()) {
      return Field{std::string(kStaticNames[index - 1]), index == kRootPath ? "/" : ""};
    }
    index -= kStaticNames.size() + 1;
    if (index >= table_.size()) return Malformed("a field that is not in the table");
    return table_[index];
  }

  // 6.1, 6.2: a field of the table, or a literal one, which may become one.
  absl::StatusOr<Field> Next() {
    if ((First() & 0x80U) != 0) {
      ESPALIER_ASSIGN_OR_RETURN(const std::uint64_t index, Integer(7));
      return At(index);
    }
    const bool indexed = (First() & 0x40U) != 0;
    ESPALIER_ASSIGN_OR_RETURN(const std::uint64_t index, Integer(indexed ? 6 : 4));
    Field field;
    if (index == 0) {
      ESPALIER_ASSIGN_OR_RETURN(field.name, Text());
    } else {
      ESPALIER_ASSIGN_OR_RETURN(field, At(index));
    }
    ESPALIER_ASSIGN_OR_RETURN(field.value, Text());
    if (indexed) Add(field);
    return field;
  }

  absl::Status Resize() {
    ESPALIER_ASSIGN_OR_RETURN(const std::uint64_t most, Integer(5));
    if (most > kTableBytes) return Malformed("a table that is too large");
    most_ = most;
    Evict();
    return absl::OkStatus();
  }

  void Add(Field field) {
    bytes_ += field.bytes();
    table_.push_front(std::move(field));
    Evict();
  }

  void Evict() {
    while (bytes_ > most_) {
      bytes_ -= table_.back().bytes();
      table_.pop_back();
    }
  }

  std::string_view left_;
  std::deque<Field> table_;  // the newest first
  std::size_t bytes_ = 0;    // of it
  std::size_t most_ = kTableBytes;
};

}  // namespace

absl::StatusOr<CallHead> ReadCallHead(std::string_view block) { return BlockReader(block).Read(); }

}  // namespace espalier
