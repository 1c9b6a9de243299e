// Several courses of control on one thread, which change places where they say so, and nowhere else.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace onehop::test {

class Fibers {
 public:
  explicit Fibers(std::vector<std::function<void()>> bodies);
  Fibers(const Fibers&) = delete;

  /// Returns when all bodies have.
  void run();

  /// Called by a body: the next one that has not returned goes on, in a ring; later this one does.
  void yield();

 private:
  struct Fiber {
    std::function<void()> body;
    std::unique_ptr<unsigned char[]> stack;
    ucontext_t start;  ///< where it begins; afterwards it goes on at `here`
    jmp_buf here;
    bool started = false, done = false;
  };

  static void enter(unsigned int low, unsigned int high);
  [[noreturn]] void go_on_with(size_t fiber);
  bool next_of(size_t fiber, size_t& next) const;

  std::vector<Fiber> fibers_;
  size_t current_ = 0;
  jmp_buf caller_;
};

}  // namespace onehop::test
