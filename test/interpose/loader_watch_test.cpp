// Being told of dlopen and dlclose. The loader is watched once per process, so the tests share one.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <memory>
#include <thread>

#include "test/interpose/late_hook.hpp"
#include "test/interpose/planted.hpp"

namespace onehop::interpose::test {
namespace {

class LoaderWatch : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Status watching = watch_loader(&LateHook::changed);
    ASSERT_TRUE(watching) << watching.reason();
  }
  static long seen_by_constructor(const Loaded& loaded) {
    return *reinterpret_cast<long*>(loaded.address("late_seen_by_constructor"));
  }
};

TEST_F(LoaderWatch, SeesAnObjectBeforeItsConstructors) {
  const int before = LateHook::notified;
  errno = 99;
  const Loaded late(LATE);
  EXPECT_EQ(errno, 99);
  EXPECT_EQ(LateHook::failure, "");
  EXPECT_EQ(LateHook::notified, before + 1) << "once for each change";
  EXPECT_EQ(seen_by_constructor(late), 1101);
  EXPECT_EQ(late.function("late_value")(5), 1105);
}

TEST_F(LoaderWatch, SeesAnObjectThatComesBack) {
  auto late = std::make_unique<Loaded>(LATE);
  const unsigned char* const address = late->address("late_value");
  const int patched = LateHook::patched;
  ASSERT_TRUE(LateHook::patch.has_value());
  ASSERT_TRUE(LateHook::patch->intact());
  const int before = LateHook::notified;
  late.reset();
  EXPECT_EQ(LateHook::notified, before + 1);
  EXPECT_FALSE(LateHook::patch->intact());

  late = std::make_unique<Loaded>(LATE);
  EXPECT_EQ(late->address("late_value"), address) << "the loader chose another address: less is tested";
  EXPECT_EQ(LateHook::failure, "");
  EXPECT_EQ(LateHook::patched, patched + 1);
  EXPECT_TRUE(LateHook::patch->intact());
  EXPECT_EQ(seen_by_constructor(*late), 1101);
}

TEST_F(LoaderWatch, SaysNothingWhenNothingChanges) {
  const Loaded late(LATE);
  const int before = LateHook::notified;
  const Loaded again(LATE);
  EXPECT_EQ(dlopen("no such object", RTLD_NOW), nullptr);
  EXPECT_LE(LateHook::notified, before + 1);
  EXPECT_TRUE(LateHook::patch->intact());
}

TEST_F(LoaderWatch, WorksFromSeveralThreads) {
  const int before = LateHook::notified;
  std::thread threads[2];
  for (std::thread& thread : threads)
    thread = std::thread([] {
      for (int i = 0; i < 100; ++i) {
        const Loaded late(LATE);
        EXPECT_EQ(late.function("late_value")(i), 1100 + i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(LateHook::notified, before);
  EXPECT_EQ(LateHook::failure, "");
}

TEST_F(LoaderWatch, SurvivesAnotherNamespace) {
  void* handle = dlmopen(LM_ID_NEWLM, LATE, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<Function>(dlsym(handle, "late_value"))(1), 101) << "not of this namespace";
  dlclose(handle);
  EXPECT_EQ(LateHook::failure, "");
}

TEST_F(LoaderWatch, IsThereOnce) {
  const Status second = watch_loader(&LateHook::changed);
  ASSERT_FALSE(second);
  EXPECT_NE(second.reason().find("already"), std::string::npos);
}

// The watching object comes with LD_PRELOAD, into a program that knows nothing of it.
TEST(Preloaded, ObjectWatches) {
  const std::string command = std::string("LD_PRELOAD=") + PRELOADED + " " + PLAIN_PROGRAM + " " + LATE;
  FILE* output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::array<char, 256> line{};
  EXPECT_NE(fgets(line.data(), line.size(), output), nullptr);
  EXPECT_EQ(pclose(output), 0);
  EXPECT_STREQ(line.data(), "constructor 1101, dlsym 1105\n");
}

}  // namespace
}  // namespace onehop::interpose::test
