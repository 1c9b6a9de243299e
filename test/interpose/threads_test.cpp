// Redirecting functions that other threads are calling at that moment.
#include <atomic>
#include <thread>

#include "test/interpose/planted.hpp"

namespace onehop::interpose::test {
namespace {

constexpr long kMark = 1L << 40;
void* original_of_marked = nullptr;
long marked(long x) {
  return reinterpret_cast<Function>(original_of_marked)(x) + kMark;
}

// The planted functions have one instruction that covers all five bytes, or pushes that the jump is put
// behind: nothing that the writer documents as a remaining risk. So a crash or a wrong result is a failure of
// the protocol.
class Hammered : public testing::TestWithParam<const char*> {};

TEST_P(Hammered, FunctionIsRedirectedInEveryPlace) {
  for (int offset = 0; offset < 63; ++offset) {  // at 63 good_at_ is refused
    const std::string symbol = GetParam() + std::to_string(offset);
    const Loaded loaded(PLANTED);
    const Function function = loaded.function(symbol);

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
    EXPECT_TRUE(patch) << (patch ? "" : patch.reason());
    const bool installed = patch && patch->install();
    EXPECT_TRUE(installed);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << symbol;
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPlace, Hammered, testing::Values("good_at_", "good_push_at_"),
                         [](const auto& parameter) { return parameter.index == 0 ? "Single" : "Push"; });

}  // namespace
}  // namespace onehop::interpose::test
