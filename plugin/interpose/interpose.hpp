// Taking over functions of a shared object that is already mapped, and knowing when new objects appear.
//
// This folder knows nothing of NCCL. It works in two phases: prepare() decodes, checks and writes
// trampolines, and may fail with nothing changed; install() then redirects all the functions. A caller either
// gets every function or leaves the object alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/result.hpp"

namespace onehop::interpose {

/// A mapped ELF object. A value: it stays readable after the object is gone, but find() must not be called
/// then.
class Image {
 public:
  struct Symbol {
    unsigned char* address = nullptr;  ///< null: not defined here
    size_t size = 0;                   ///< bytes, as the symbol table says; 0 if it does not
    bool resolver = false;  ///< an IFUNC: `address` chooses the function, so it cannot be taken over
  };

  /// The function that this object itself defines and exports under `name` (no other object is searched).
  /// Reads the object's own dynamic symbol table in memory: legal inside the loader, before the object is
  /// relocated.
  Symbol find(const char* name) const;

  const std::string& path() const {
    return path_;
  }                                           ///< as the loader names it; the executable's is its real path
  uintptr_t base() const { return base_; }    ///< load address (dlpi_addr)
  uintptr_t begin() const { return begin_; }  ///< first and one-past-last mapped address
  uintptr_t end() const { return end_; }

 private:
  friend std::vector<Image> images_defining(const char* name);
  std::string path_;
  uintptr_t base_ = 0, begin_ = 0, end_ = 0;
  const void* dynamic_ = nullptr;
};

/// Every mapped object that defines and exports `name`, except the object that contains this code.
std::vector<Image> images_defining(const char* name);

/// One function to take over.
struct Hook {
  const char* symbol = nullptr;
  void* replacement = nullptr;
  void** original = nullptr;  ///< receives the way to the original: the trampoline. Written by install(),
                              ///< before the entry changes
};

/// Redirections of some functions of one image: prepared, then installed; never removed.
class Patch {
 public:
  Patch(Patch&&) noexcept;
  Patch& operator=(Patch&&) noexcept;
  ~Patch();

  /// Decodes the entry of every hooked function that the image has and builds the trampolines. Hooks whose
  /// symbol the image lacks are left out (their `*original` is not touched). Fails, with nothing changed, on
  /// anything unexpected.
  static Result<Patch> prepare(const Image&, const std::vector<Hook>&);

  /// Redirects all prepared functions; fails (with what was already redirected put back) where the system
  /// denies writing code.
  Status install();

  /// Whether every entry still holds the jump that install() wrote (false when the image was unmapped and the
  /// address reused).
  bool intact() const;

 private:
  struct Impl;
  explicit Patch(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

/// From now on calls `changed` (on the thread that runs dlopen or dlclose, inside the loader's lock) each
/// time the set of mapped objects changed. New objects are mapped, but may not be relocated yet, and their
/// constructors have not run. Once per process.
Status watch_loader(void (*changed)());

}  // namespace onehop::interpose
