#pragma once

namespace espalier {

// Owns an open file descriptor and closes it at the end of its life. -1: none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Close();
  int Release();

 private:
  int fd_ = -1;
};

}  // namespace espalier
