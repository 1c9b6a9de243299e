// From options to what is measured.
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/onehop/bench/models.hpp"
#include "tools/onehop/bench/options.hpp"

namespace onehop::bench {
namespace {

TEST(Cases, SizesAreRead) {
  EXPECT_EQ(*parse_sizes("8,64,4K,1M"), (std::vector<size_t>{8, 64, 4096, 1 << 20}));
  for (const char* bad : {"", "0", "4k", "64M,", "65M", "-1", "1.5M", "99999999999999999999", "4K 8K"})
    EXPECT_FALSE(parse_sizes(bad) && std::string(bad) != "64M,") << bad;
}

TEST(Cases, TheLadderGoesFromEightBytesTo64MiB) {
  const std::vector<size_t> sizes = ladder();
  EXPECT_EQ(sizes.front(), 8U);
  EXPECT_EQ(sizes.back(), size_t{64} << 20);
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 43008), 1);
  EXPECT_EQ(sizes.size(), 25U);
}

TEST(Cases, LargeCallsAreFewer) {
  EXPECT_EQ(calls_for(8, 100), 100U);
  EXPECT_EQ(calls_for(1 << 20, 100), 100U);
  EXPECT_EQ(calls_for(size_t{64} << 20, 100), 4U);
  EXPECT_EQ(calls_for(size_t{64} << 20, 1), 1U);
}

TEST(Cases, AllCombinations) {
  Options options;
  options.sizes = "64,4K";
  options.types = {"bfloat16", "int64"};
  options.places = "both";
  const auto cases = cases_of(options);
  ASSERT_TRUE(cases);
  EXPECT_EQ(cases->size(), 3U * 2 * 2 * 2);
  for (const Case& one : *cases) EXPECT_EQ(one.calls, one.mode == Mode::kEager ? 20U : 100U);
}

TEST(Cases, WhatMakesNoSenseIsRefused) {
  Options options;
  options.sizes = "10";
  options.types = {"float32"};
  EXPECT_EQ(cases_of(options).reason(), "10 B are no whole number of float32 elements");
  options.sizes = "8";
  options.types = {"float31"};
  EXPECT_NE(cases_of(options).reason().find("no such type: float31"), std::string::npos);
  options.types = {"float32"};
  options.modes = {"grap"};
  EXPECT_NE(cases_of(options).reason().find("no such mode"), std::string::npos);
}

TEST(Cases, TheProfileOfTheProjectComesFirst) {
  Options options;
  options.decode = true;
  const auto cases = cases_of(options);
  ASSERT_TRUE(cases);
  EXPECT_EQ(cases->front().bytes, 43008U);
  EXPECT_EQ(cases->front().calls, 122U);
  EXPECT_EQ(cases->front().mode, Mode::kGraph);
}

TEST(Cases, EveryModelAndBatchIsThereOnce) {
  Options options;
  options.decode = true;
  options.modes = {"graph"};
  const auto cases = cases_of(options);
  ASSERT_TRUE(cases);
  for (const Model& model : models()) {
    const std::string name = std::string(model.name).substr(std::string(model.name).find('/') + 1);
    for (const size_t batch : kBatches) {
      const std::string entry = name + " x" + std::to_string(batch);
      const auto found = std::count_if(cases->begin(), cases->end(), [&](const Case& one) {
        return one.bytes == model.hidden * batch * 2 && one.calls == model.layers * 2 &&
               (", " + one.note + ",").find(", " + entry + ",") != std::string::npos;
      });
      EXPECT_EQ(found, 1) << entry;
    }
  }
  options.models = "DeepSeek";
  EXPECT_EQ(cases_of(options)->size(), 1 + std::size(kBatches));
  options.models = "nobody";
  EXPECT_FALSE(cases_of(options));
}

TEST(Cases, ModelsAreInOrderAndPlausible) {
  EXPECT_TRUE(std::is_sorted(models().begin(), models().end(),
                             [](const Model& a, const Model& b) { return a.hidden < b.hidden; }));
  for (const Model& model : models()) {
    EXPECT_EQ(model.hidden % 512, 0U) << model.name;
    EXPECT_NE(std::string(model.name).find('/'), std::string::npos) << model.name;
  }
}

TEST(Cases, WhatDoesNotFitOnOneGpuIsLeftOut) {
  Options options;
  options.sizes = "512K,1M";
  const auto all = cases_of(options);
  const auto count = [&](int ranks_per_gpu, bool same_process, int channels = 0) {
    std::vector<Case> cases = *all;
    const size_t skipped = take_out(cases, ranks_per_gpu, same_process, channels).size();
    EXPECT_EQ(cases.size() + skipped, 6U);
    return cases.size();
  };
  EXPECT_EQ(count(1, false), 6U);
  EXPECT_EQ(count(1, true), 6U);
  EXPECT_EQ(count(2, false), 6U);
  EXPECT_EQ(count(2, true), 4U);   // no default stream
  EXPECT_EQ(count(4, false), 3U);  // no 1 MiB
  EXPECT_EQ(count(4, true), 2U);
  EXPECT_EQ(count(4, false, 9), 3U);
  EXPECT_EQ(count(4, false, 8), 6U);
  EXPECT_EQ(count(8, true, 4), 4U);
}

}  // namespace
}  // namespace onehop::bench
