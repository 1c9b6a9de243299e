// A thread's open group belongs to that thread and to one libnccl image.
#include "plugin/group.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <thread>

namespace onehop::test {
namespace {

TEST(Group, IsOnePerImage) {
  std::set<const Group*> groups;
  for (size_t index = 0; index < kMaxImages; ++index) {
    Image image;
    image.index = index;
    Group& group = group_of(image);
    EXPECT_TRUE(groups.insert(&group).second);
    EXPECT_EQ(&group, &group_of(image)) << "the same at every call";
    EXPECT_EQ(group.depth, 0);
    EXPECT_TRUE(group.queued.empty());
  }
}

TEST(Group, IsOnePerThread) {
  Image image;
  group_of(image).depth = 3;
  group_of(image).queued.push_back({});
  std::thread([&image, mine = &group_of(image)] {
    Group& group = group_of(image);
    EXPECT_NE(&group, mine);
    EXPECT_EQ(group.depth, 0) << "another thread's group is not open here";
    EXPECT_TRUE(group.queued.empty());
    group.depth = 7;
  }).join();
  EXPECT_EQ(group_of(image).depth, 3);
  EXPECT_EQ(group_of(image).queued.size(), 1u);
  group_of(image) = {};
}

TEST(Call, BytesAreOfItsType) {
  Call call{};
  call.facts = {3, nccl::kFloat64, nccl::kSum};
  EXPECT_EQ(call.bytes(), 24u);
  call.facts = {3, static_cast<nccl::DataType>(99), nccl::kSum};
  EXPECT_EQ(call.bytes(), 0u);
}

}  // namespace
}  // namespace onehop::test
