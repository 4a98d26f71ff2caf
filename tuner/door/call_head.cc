#include "tuner/door/call_head.h"

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

struct FreeInflater {
  void operator()(nghttp2_hd_inflater* inflater) const { nghttp2_hd_inflate_del(inflater); }
};

std::string_view View(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

void Take(const nghttp2_nv& field, CallHead& head) {
  const std::string_view name = View(field.name, field.namelen);
  const std::string_view value = View(field.value, field.valuelen);
  if (name == ":path") head.path = value;
  if (name == "authorization") head.authorizations.emplace_back(value);
}

}  // namespace

absl::StatusOr<CallHead> ReadCallHead(std::string_view block) {
  nghttp2_hd_inflater* made = nullptr;
  if (nghttp2_hd_inflate_new(&made) != 0) return absl::ResourceExhaustedError("out of memory");
  const std::unique_ptr<nghttp2_hd_inflater, FreeInflater> inflater(made);
  CallHead head;
  int flags = 0;
  while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
    nghttp2_nv field{};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(block.data());
    const auto read =
        nghttp2_hd_inflate_hd2(inflater.get(), &field, &flags, bytes, block.size(), /*in_final=*/1);
    if (read < 0) {
      return absl::InvalidArgumentError(absl::StrCat("malformed header block (RFC 7541): ",
                                                     nghttp2_strerror(static_cast<int>(read))));
    }
    block.remove_prefix(static_cast<std::size_t>(read));
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) Take(field, head);
  }
  return head;
}

}  // namespace espalier
