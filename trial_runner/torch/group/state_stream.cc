#include "trial_runner/torch/group/state_stream.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <cstring>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "trial_runner/torch/process/host_copies.h"

namespace espalier {
namespace {

// Of a contiguous tensor. Keeps the storage and not the tensor, which may part with it.
CollectiveBuffer BufferOf(const at::Tensor& tensor) {
  CollectiveBuffer buffer;
  buffer.type = CollectiveBuffer::Type::kByte;
  buffer.start = tensor.data_ptr();
  buffer.count = static_cast<std::int64_t>(tensor.nbytes());
  ESPALIER_CHECK(tensor.is_cpu() || tensor.is_cuda(),
                 "training state is in the host's memory or on a CUDA device");
  buffer.device = tensor.is_cpu() ? CollectiveBuffer::kHost : tensor.get_device();
  buffer.owner = std::make_shared<c10::Storage>(tensor.storage());
  return buffer;
}

at::ScalarType TypeOf(const TensorForm& form) { return static_cast<at::ScalarType>(form.type); }

std::string FormText(at::ScalarType type, at::IntArrayRef shape) {
  std::ostringstream out;
  out << type << " " << shape;
  return out.str();
}

at::Tensor MemoryOf(const CollectiveBuffer& buffer) {
  const at::Device device =
      buffer.device == CollectiveBuffer::kHost
          ? at::Device(at::kCPU)
          : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(buffer.device));
  return at::from_blob(buffer.start, {buffer.count}, at::TensorOptions(at::kByte).device(device));
}

}  // namespace

void CopyMemory(const CollectiveBuffer& from, const CollectiveBuffer& to) {
  if (from.start != to.start) MemoryOf(to).copy_(MemoryOf(from));
}

void StateWriter::Bytes(const void* start, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(start);
  offer_.description->insert(offer_.description->end(), bytes, bytes + size);
}

void StateWriter::Integer(std::int64_t value) { Bytes(&value, sizeof value); }
void StateWriter::Real(double value) { Bytes(&value, sizeof value); }

void StateWriter::Text(std::string_view text) {
  Integer(static_cast<std::int64_t>(text.size()));
  Bytes(text.data(), text.size());
}

void StateWriter::Tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    Integer(-1);
    return;
  }
  Integer(static_cast<std::int64_t>(tensor.scalar_type()));
  Integer(tensor.dim());
  for (const std::int64_t extent : tensor.sizes()) Integer(extent);
  const bool ordered = !tensor.is_contiguous() && tensor.is_non_overlapping_and_dense();
  Integer(ordered ? 1 : 0);
  for (std::int64_t i = 0; ordered && i < tensor.dim(); ++i) Integer(tensor.stride(i));
  const at::Tensor whole = tensor.detach().contiguous();
  if (whole.nbytes() >= kLargeBytes) {
    offer_.tensors.push_back(BufferOf(whole));
  } else if (whole.is_cpu()) {
    Bytes(whole.const_data_ptr(), whole.nbytes());
  } else if (whole.nbytes() > 0) {
    gaps_.push_back({offer_.description->size(), whole});
    offer_.description->resize(offer_.description->size() + whole.nbytes());
  }
}

// Small tensors come from a device together.
StateOffer StateWriter::Take() && {
  std::vector<at::Tensor> tensors;
  for (const Gap& gap : gaps_) tensors.push_back(gap.tensor);
  const HostCopies copies(tensors);
  for (std::size_t i = 0; i < gaps_.size(); ++i) {
    const at::Tensor& here = copies.Await()[i];
    std::memcpy(offer_.description->data() + gaps_[i].begin, here.const_data_ptr(), here.nbytes());
  }
  return std::move(offer_);
}

absl::Status StateReader::Content(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach();
  if (values.nbytes() >= kLargeBytes) {
    at::Tensor arriving = values;
    if (aside_ || !values.is_contiguous()) {
      arriving = at::empty_like(values, values.options(), at::MemoryFormat::Contiguous);
      detours_.push_back({arriving, values});
    }
    expected_.push_back(BufferOf(arriving));
    return absl::OkStatus();
  }
  if (values.nbytes() == 0) return absl::OkStatus();
  const bool pinned = values.is_cuda();
  at::Tensor here =
      at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(pinned));
  ESPALIER_RETURN_IF_ERROR(from_.Bytes(here.mutable_data_ptr(), here.nbytes()));
  values.copy_(here, /*non_blocking=*/pinned);
  return absl::OkStatus();
}

absl::Status StateReader::TensorInto(const at::Tensor& tensor, const std::string& name) {
  ESPALIER_ASSIGN_OR_RETURN(const TensorForm form, from_.Form());
  if (!form.defined || TypeOf(form) != tensor.scalar_type() || tensor.sizes() != form.shape) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " is ", FormText(tensor.scalar_type(), tensor.sizes()), " in this replica and ",
        form.defined ? FormText(TypeOf(form), form.shape) : "undefined",
        " in the group that it joins: do all replicas run the same program with the same "
        "parameters?"));
  }
  return Content(tensor);
}

absl::Status StateReader::AnyTensor(at::Tensor& tensor, at::Device device) {
  ESPALIER_ASSIGN_OR_RETURN(const TensorForm form, from_.Form());
  if (!form.defined) {
    tensor = at::Tensor();
    return absl::OkStatus();
  }
  const bool fits = tensor.defined() && tensor.scalar_type() == TypeOf(form) &&
                    tensor.sizes() == form.shape && tensor.device() == device;
  if (!fits) {
    const auto options = at::TensorOptions().dtype(TypeOf(form)).device(device);
    tensor = form.strides.empty() ? at::empty(form.shape, options)
                                  : at::empty_strided(form.shape, form.strides, options);
  }
  return Content(tensor);
}

}  // namespace espalier
