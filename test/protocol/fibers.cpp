#include "test/protocol/fibers.hpp"

#include <cstdint>

namespace onehop::test {
namespace {

constexpr size_t kStack = 256 << 10;

}  // namespace

// A change of place by swapcontext() is two system calls, which take longer than an operation. So contexts
// serve to begin on another stack, and _setjmp() to change between stacks.
Fibers::Fibers(std::vector<std::function<void()>> bodies) : fibers_(bodies.size()) {
  for (size_t f = 0; f < fibers_.size(); ++f) {
    Fiber& fiber = fibers_[f];
    fiber.body = std::move(bodies[f]);
    fiber.stack = std::make_unique<unsigned char[]>(kStack);
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = kStack;
    fiber.start.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&fiber.start, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
                static_cast<unsigned int>(self), static_cast<unsigned int>(self >> 32));
  }
}

void Fibers::run() {
  if (!fibers_.empty() && _setjmp(caller_) == 0) go_on_with(0);
}

[[gnu::noinline]] void Fibers::yield() {
  size_t next = current_;
  if (next_of(current_, next) && _setjmp(fibers_[current_].here) == 0) go_on_with(next);
}

void Fibers::go_on_with(size_t f) {
  current_ = f;
  Fiber& fiber = fibers_[f];
  if (fiber.started) _longjmp(fiber.here, 1);
  fiber.started = true;
  setcontext(&fiber.start);
  __builtin_unreachable();
}

void Fibers::enter(unsigned int low, unsigned int high) {
  auto* self = reinterpret_cast<Fibers*>(uintptr_t{high} << 32 | low);
  Fiber& fiber = self->fibers_[self->current_];
  fiber.body();
  fiber.done = true;
  size_t next = 0;
  if (self->next_of(self->current_, next)) self->go_on_with(next);
  _longjmp(self->caller_, 1);
}

/// False: there is no other.
bool Fibers::next_of(size_t fiber, size_t& next) const {
  for (size_t i = 1; i < fibers_.size(); ++i) {
    next = (fiber + i) % fibers_.size();
    if (!fibers_[next].done) return true;
  }
  return false;
}

}  // namespace onehop::test
