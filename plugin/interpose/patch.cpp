// Redirecting several functions of one image, all or none.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "plugin/interpose/code_arena.hpp"
#include "plugin/interpose/code_writer.hpp"
#include "plugin/interpose/interpose.hpp"
#include "plugin/interpose/memory_map.hpp"
#include "plugin/interpose/relocate.hpp"
#include "plugin/interpose/stub.hpp"

namespace onehop::interpose {
namespace {

/// Room for one function in the arena: the stub, then the trampoline. At most 4 + 8 + 4 + 15 bytes of
/// instructions are moved, of which at most three grow, by 4 bytes each, and a jump follows.
constexpr size_t kSlotSize = 128;

struct Redirection {
  const char* symbol = nullptr;
  void* replacement = nullptr;
  std::vector<void**> originals;  ///< several where the function was hooked under several names
  Entry entry;
  JumpBytes before{}, after{};
  void* trampoline = nullptr;
};

JumpBytes bytes_at(const unsigned char* at) {
  JumpBytes bytes;
  std::memcpy(bytes.data(), at, bytes.size());
  return bytes;
}

/// What a maintainer needs to see why a build was refused.
Error refused(const Image& image, const char* symbol, const Image::Symbol& found, const std::string& reason) {
  char text[96];
  int length = std::snprintf(text, sizeof text, "offset 0x%zx,",
                             static_cast<size_t>(reinterpret_cast<uintptr_t>(found.address) - image.base()));
  const size_t shown = std::min<size_t>(found.size, 16);
  for (size_t i = 0; i < shown; ++i)
    length +=
        std::snprintf(text + length, sizeof text - static_cast<size_t>(length), " %02x", found.address[i]);
  return Error{std::string(symbol) + " in " + image.path() + " (" + text +
               ") cannot be redirected: " + reason};
}

bool overlap(const Entry& a, const Entry& b) {
  return a.jump() < b.jump() + kJumpSize && b.jump() < a.jump() + kJumpSize;
}

Result<std::vector<Redirection>> examine(const Image& image, const std::vector<Hook>& hooks) {
  const Result<Decoder> decoder = Decoder::create();
  if (!decoder) return decoder.error();

  std::vector<Redirection> redirections;
  for (const Hook& hook : hooks) {
    const Image::Symbol found = image.find(hook.symbol);
    if (found.address == nullptr) continue;
    const auto refuse = [&](const std::string& reason) { return refused(image, hook.symbol, found, reason); };
    if (found.resolver) return refuse("it is chosen at run time (IFUNC)");

    const auto same = [&](const Redirection& other) { return other.entry.function == found.address; };
    if (auto other = std::find_if(redirections.begin(), redirections.end(), same);
        other != redirections.end()) {
      // Another name of the same function.
      if (other->replacement != hook.replacement)
        return refuse(std::string("it is the same function as ") + other->symbol +
                      ", with another replacement");
      other->originals.push_back(hook.original);
      continue;
    }

    Result<Entry> entry = examine_entry(*decoder, found.address, found.size);
    if (!entry) return refuse(entry.reason());
    const auto overlaps = [&](const Redirection& other) { return overlap(other.entry, *entry); };
    if (std::any_of(redirections.begin(), redirections.end(), overlaps))
      return refuse("it overlaps another function");
    Redirection redirection;
    redirection.symbol = hook.symbol;
    redirection.replacement = hook.replacement;
    redirection.originals.push_back(hook.original);
    redirection.before = bytes_at(entry->jump());
    redirection.entry = std::move(*entry);
    redirections.push_back(std::move(redirection));
  }
  return redirections;
}

/// Writes stub and trampoline into `slot` and works out the jump.
Status build(unsigned char* slot, Redirection& redirection) {
  const Entry& entry = redirection.entry;
  const std::vector<unsigned char> stub = make_stub(redirection.replacement, entry.pushes);
  unsigned char* trampoline = slot + kStubSize;
  const auto moved = relocate(entry.moved, reinterpret_cast<uintptr_t>(trampoline),
                              reinterpret_cast<uintptr_t>(entry.resume()));
  if (!moved) return moved.error();
  const auto jump = make_jump(entry.jump(), slot);
  if (!jump) return jump.error();
  if (stub.size() > kStubSize || moved->size() > kSlotSize - kStubSize) return Error{"its copy has no room"};

  std::memcpy(slot, stub.data(), stub.size());
  std::memcpy(trampoline, moved->data(), moved->size());
  redirection.after = *jump;
  redirection.trampoline = trampoline;
  return {};
}

/// Copies memory that may be unmapped, or be unmapped by another thread at this moment.
bool read_memory(const void* at, void* to, size_t size) {
  const iovec local{to, size}, remote{const_cast<void*>(at), size};
  const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (got == static_cast<ssize_t>(size)) return true;
  if (errno == EFAULT) return false;
  // The system call is denied (seccomp): look, then read, and hope that no other thread unmaps it in between.
  const auto begin = reinterpret_cast<uintptr_t>(at);
  const Result<std::vector<Region>> regions = mapped_regions();
  if (!regions) return false;
  for (const Region& region : *regions) {
    if (begin < region.begin || begin + size > region.end || !(region.protection & PROT_READ)) continue;
    std::memcpy(to, at, size);
    return true;
  }
  return false;
}

}  // namespace

struct Patch::Impl {
  std::optional<CodeArena> arena;  ///< none if the image has none of the functions
  std::vector<Redirection> redirections;
  bool installed = false;
};

Patch::Patch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Patch::Patch(Patch&&) noexcept = default;
Patch& Patch::operator=(Patch&&) noexcept = default;
Patch::~Patch() = default;

Result<Patch> Patch::prepare(const Image& image, const std::vector<Hook>& hooks) try {
  auto impl = std::make_unique<Impl>();
  Result<std::vector<Redirection>> examined = examine(image, hooks);
  if (!examined) return examined.error();
  impl->redirections = std::move(*examined);
  if (impl->redirections.empty()) return Patch(std::move(impl));

  Result<CodeArena> arena =
      CodeArena::map_near(image.begin(), image.end(), impl->redirections.size() * kSlotSize);
  if (!arena) return Error{image.path() + " cannot be redirected: " + arena.reason()};
  unsigned char* slot = arena->data();
  for (Redirection& redirection : impl->redirections) {
    if (Status built = build(slot, redirection); !built)
      return refused(image, redirection.symbol, image.find(redirection.symbol), built.reason());
    slot += kSlotSize;
  }
  if (Status sealed = arena->seal(); !sealed)
    return Error{image.path() + " cannot be redirected: " + sealed.reason()};
  impl->arena = std::move(*arena);
  return Patch(std::move(impl));
} catch (const std::exception& exception) {
  return Error{std::string("a library cannot be redirected: ") + exception.what()};
}

Status Patch::install() try {
  if (impl_->installed) return Error{"already redirected"};
  std::vector<unsigned char*> jumps;
  for (const Redirection& redirection : impl_->redirections) {
    if (bytes_at(redirection.entry.jump()) != redirection.before)
      return Error{std::string(redirection.symbol) + " was changed by another tool meanwhile"};
    jumps.push_back(redirection.entry.jump());
  }
  // All that can fail comes before the first change, so that there is nothing to take back: a redirection
  // that another thread may already have entered could not be taken back safely.
  Result<WritableCode> code = WritableCode::open(jumps);
  if (!code) return code.error();

  impl_->installed = true;
  if (impl_->arena) impl_->arena->keep();
  // Pairs with: the replacement's read of `*original`, which it makes after having been entered through the
  // jump. Without this order: a thread in the replacement that has no way on. Release for the same reason as
  // the jump's store.
  for (const Redirection& redirection : impl_->redirections)
    for (void** original : redirection.originals)
      if (original != nullptr) __atomic_store_n(original, redirection.trampoline, __ATOMIC_RELEASE);
  for (const Redirection& redirection : impl_->redirections)
    code->write(redirection.entry.jump(), redirection.after);
  return {};
} catch (const std::exception& exception) {
  return Error{std::string("code cannot be redirected: ") + exception.what()};
}

bool Patch::intact() const {
  if (!impl_->installed) return false;
  for (const Redirection& redirection : impl_->redirections) {
    JumpBytes now;
    if (!read_memory(redirection.entry.jump(), now.data(), now.size()) || now != redirection.after)
      return false;
  }
  return true;
}

}  // namespace onehop::interpose
