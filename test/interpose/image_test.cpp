// Which objects and functions are found.
#include <gtest/gtest.h>

#include "test/interpose/planted.hpp"

/// Also in the planted object. The test itself contains the code under test and must never be found.
extern "C" __attribute__((visibility("default"), used)) long also_in_test() {
  return 0;
}

namespace onehop::interpose::test {
namespace {

class ImageTest : public testing::TestWithParam<const char*> {
 protected:
  Loaded loaded_{GetParam()};
};

TEST_P(ImageTest, FindsWhatDlsymFinds) {
  const Image image = Loaded::image();
  EXPECT_EQ(image.path(), GetParam());
  for (const char* symbol :
       {"good_lea", "good_at_0", "good_push_at_63", "bad_short", "also_in_test", "weak_named"}) {
    const Image::Symbol found = image.find(symbol);
    EXPECT_EQ(found.address, loaded_.address(symbol)) << symbol;
    EXPECT_GT(found.size, 0u) << symbol;
    EXPECT_FALSE(found.resolver);
    EXPECT_GE(reinterpret_cast<uintptr_t>(found.address), image.begin());
    EXPECT_LT(reinterpret_cast<uintptr_t>(found.address), image.end());
  }
  EXPECT_EQ(image.find("bad_no_size").size, 0u);
  EXPECT_EQ(image.find("bad_no_size").address, loaded_.address("bad_no_size"));
}

TEST_P(ImageTest, FindsOnlyFunctionsDefinedInTheObject) {
  const Image image = Loaded::image();
  EXPECT_EQ(image.find("planted_data").address, nullptr);
  EXPECT_EQ(image.find("__cxa_finalize").address, nullptr);  // used, but libc's
  EXPECT_EQ(image.find("good_").address, nullptr);
  EXPECT_EQ(image.find("").address, nullptr);
  EXPECT_TRUE(image.find("bad_ifunc").resolver);
}

TEST_P(ImageTest, LeavesOutTheObjectThatContainsTheCode) {
  ASSERT_NE(dlsym(RTLD_DEFAULT, "also_in_test"), nullptr) << "the test does not export it: nothing is tested";
  const Image image = Loaded::image("also_in_test");
  EXPECT_EQ(image.path(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(HashTables, ImageTest, testing::Values(PLANTED, PLANTED_SYSV),
                         [](const auto& parameter) { return parameter.index == 0 ? "Gnu" : "Sysv"; });

TEST(Images, AreAllThatDefineTheFunction) {
  const Loaded first(PLANTED), second(PLANTED_SYSV);
  EXPECT_EQ(images_defining("good_lea").size(), 2u);
  EXPECT_TRUE(images_defining("no_object_has_this").empty());
}

TEST(Images, IncludeTheSystemsButNotTheKernels) {
  for (const char* symbol : {"getsid", "_dl_debug_state"}) {
    const std::vector<Image> images = images_defining(symbol);
    ASSERT_EQ(images.size(), 1u) << symbol;
    EXPECT_EQ(images[0].find(symbol).address, dlsym(RTLD_DEFAULT, symbol)) << symbol;
  }
  EXPECT_TRUE(images_defining("__vdso_gettimeofday").empty());
}

}  // namespace
}  // namespace onehop::interpose::test
