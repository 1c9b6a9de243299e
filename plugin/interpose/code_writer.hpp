// Writing a jump over code that other threads may be running.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plugin/interpose/entry.hpp"

namespace onehop::interpose {

using JumpBytes = std::array<unsigned char, kJumpSize>;

/// Whether a jump at `at` lies in one aligned 8-byte word, so that it appears in one step.
bool fits_one_store(const unsigned char* at);
/// Whether a jump can be written at `at` while other threads run.
bool can_write_jump(const unsigned char* at);

/// The pages under some jumps, made writable; the destructor gives each back the protection that it had.
class WritableCode {
 public:
  static Result<WritableCode> open(const std::vector<unsigned char*>& jumps);

  WritableCode(WritableCode&&) noexcept = default;
  WritableCode& operator=(WritableCode&&) = delete;
  ~WritableCode();

  /// Replaces the bytes at `at` (one of `jumps`) by `jump`. Cannot fail.
  ///
  /// A thread enters either the old or the new code, never a mixture. What remains: a thread that was stopped
  /// with its instruction pointer within the five bytes, past the first, goes on in the middle of the jump.
  /// No thread can be looked at without stopping it by a signal, which a guest in the process must not send;
  /// the window is a few instructions at the start of functions that are called rarely, and is none where the
  /// first instruction covers all five bytes.
  void write(unsigned char* at, const JumpBytes& jump);

 private:
  struct Page {
    uintptr_t address;
    int protection;
  };
  explicit WritableCode(std::vector<Page> pages) : pages_(std::move(pages)) {}
  std::vector<Page> pages_;
};

}  // namespace onehop::interpose
