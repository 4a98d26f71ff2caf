#include "tuner/storage/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace espalier {

namespace {

// A leading byte from `first` to `last` is followed by `more` others, which make a code point of at
// least `least`.
struct Form {
  unsigned first;
  unsigned last;
  std::size_t more;
  std::uint32_t least;
};
constexpr Form kForms[] = {
    {0x00, 0x7f, 0, 0}, {0xc2, 0xdf, 1, 0x80}, {0xe0, 0xef, 2, 0x800}, {0xf0, 0xf4, 3, 0x10000}};
constexpr std::uint32_t kLargest = 0x10ffff;

}  // namespace

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = static_cast<unsigned char>(text[i]);
    const Form* form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) {
      return f.first <= lead && lead <= f.last;
    });
    if (form == std::end(kForms) || text.size() - i <= form->more) return false;
    std::uint32_t point = form->more == 0 ? lead : lead & (0x3fu >> form->more);
    for (std::size_t k = 1; k <= form->more; ++k) {
      const unsigned next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0u) != 0x80u) return false;
      point = point << 6 | (next & 0x3fu);
    }
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < form->least || point > kLargest || surrogate) return false;
    i += form->more + 1;
  }
  return true;
}

}  // namespace espalier
