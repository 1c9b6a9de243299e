// Redirecting functions that other threads are calling at that moment.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "test/interpose/planted.hpp"

namespace onehop::interpose::test {
namespace {

using std::chrono::steady_clock;

constexpr long kMark = 1L << 40;
void* original_of_marked = nullptr;
long marked(long x) {
  return reinterpret_cast<Function>(original_of_marked)(x) + kMark;
}

void redirect_while_called(const std::string& symbol) {
  const Loaded loaded(PLANTED);
  const Function function = loaded.function(symbol);
  ASSERT_NE(function, nullptr) << symbol;

  std::atomic<bool> stop{false};
  std::atomic<int> ready{0}, wrong{0};
  // Goes on until it is caught: a thread that is never caught makes the test run into its time limit.
  const auto hammer = [&] {
    bool caught = false;
    for (long x = 0; !stop.load(std::memory_order_relaxed) || !caught; ++x) {
      const long result = function(x);
      caught = result == x + 0x1000 + kMark;
      if (!caught && result != x + 0x1000) ++wrong;
      if (x == 100) ++ready;
    }
  };
  std::thread threads[] = {std::thread(hammer), std::thread(hammer)};
  while (ready.load() < 2) std::this_thread::yield();
  auto patch = Patch::prepare(Loaded::image(),
                              {{symbol.c_str(), reinterpret_cast<void*>(&marked), &original_of_marked}});
  const Status installed = patch ? patch->install() : Status(patch.error());
  stop = static_cast<bool>(installed);
  EXPECT_TRUE(installed) << symbol << ": " << (installed ? "" : installed.reason());
  if (!installed) std::abort();  // the threads cannot be joined
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0) << symbol;
}

/// The places in a cache line that `wanted` accepts, again and again for a second or so.
template <class Wanted>
void redirect_everywhere(const std::string& prefix, Wanted wanted) {
  const auto end = steady_clock::now() + std::chrono::milliseconds(1000);
  do {
    for (int offset = 0; offset < 64 && !testing::Test::HasFailure(); ++offset)
      if (wanted(offset)) redirect_while_called(prefix + std::to_string(offset));
  } while (steady_clock::now() < end && !testing::Test::HasFailure());
}

// One instruction covers all five bytes: no thread can be stopped within them. So a crash or a wrong result
// is a failure of the way of writing.
TEST(Hammered, SingleInstructionInOneWord) {
  redirect_everywhere("good_at_", [](int offset) { return offset % 8 <= 3; });
}
TEST(Hammered, SingleInstructionInTwoWords) {
  redirect_everywhere("good_at_", [](int offset) { return offset % 8 > 3 && offset != 63; });
}
// The jump goes behind the push, into the aligned word that begins there, and again over one instruction.
TEST(Hammered, BehindAPush) {
  redirect_everywhere("good_push_at_", [](int offset) { return offset % 8 == 7; });
}

}  // namespace
}  // namespace onehop::interpose::test
