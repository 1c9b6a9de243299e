// The real libnccl. Without a GPU only calls without a communicator work: every function must be caught, and
// what comes back must be what an untouched second mapping of the file returns.
#include <cstdlib>

#include "test/interpose/nccl_calls.hpp"
#include "test/interpose/planted.hpp"

namespace onehop::interpose::test {
namespace {

std::string find_libnccl() {
  const char* given = std::getenv("ONEHOP_TEST_LIBNCCL");
  if (given != nullptr && *given != '\0') return given;
  return LIBNCCL;  // from the build's configuration; empty if there is none
}

TEST(Nccl, FunctionsAreCaughtAndReturnWhatStockReturns) {
  const std::string file = find_libnccl();
  if (file.empty() || access(file.c_str(), R_OK) != 0)
    GTEST_SKIP() << "no libnccl.so.2: set ONEHOP_TEST_LIBNCCL to its path";
  void* stock = dlmopen(LM_ID_NEWLM, file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(stock, nullptr) << dlerror();
  void* hooked = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(hooked, nullptr) << dlerror();

  // An application may have taken an address before.
  void* const early = dlsym(hooked, "ncclAllReduce");
  const std::vector<Image> images = images_defining("ncclAllReduce");
  ASSERT_EQ(images.size(), 1u);
  auto patch = Patch::prepare(images[0], CountingHooks::all());
  ASSERT_TRUE(patch) << patch.reason();
  const Status installed = patch->install();
  ASSERT_TRUE(installed) << installed.reason();
  EXPECT_TRUE(patch->intact());

  int found = 0;
  for (size_t i = 0; i < kNcclFunctionCount; ++i) {
    void* entry = dlsym(hooked, kNcclFunctions[i]);
    if (entry == nullptr) continue;  // an older release
    ++found;
    const int expected = call_without_comm(i, dlsym(stock, kNcclFunctions[i]));
    EXPECT_EQ(CountingHooks::calls[i], 0) << kNcclFunctions[i] << ": the other mapping is touched";
    EXPECT_EQ(call_without_comm(i, entry), expected) << kNcclFunctions[i];
    EXPECT_EQ(CountingHooks::calls[i], 1) << kNcclFunctions[i];
    // Its other name, by which profilers call it.
    void* profiled = dlsym(hooked, ("p" + std::string(kNcclFunctions[i])).c_str());
    ASSERT_NE(profiled, nullptr);
    EXPECT_EQ(call_without_comm(i, profiled), expected);
    EXPECT_EQ(CountingHooks::calls[i], 2) << kNcclFunctions[i];
  }
  EXPECT_GE(found, 8);
  EXPECT_EQ(call_without_comm(0, early), 4) << "ncclInvalidArgument";
  EXPECT_EQ(CountingHooks::calls[0], 3);
}

}  // namespace
}  // namespace onehop::interpose::test
