// The records of set-up's later exchanges, and text in fixed fields.
#include "plugin/setup/progress.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "plugin/setup/member.hpp"

namespace onehop::test {
namespace {

static_assert(sizeof(Progress) == Member::kRecordBytes);

TEST(FixedText, IsCutAndClosed) {
  std::array<char, 8> field{};
  for (const auto& [text, kept] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"a", "a"},
                                                        {"1234567", "1234567"},
                                                        {"12345678", "1234567"},
                                                        {std::string(1000, 'x'), "xxxxxxx"}}) {
    put_text(field, text);
    EXPECT_EQ(get_text(field), kept);
    EXPECT_EQ(field.back(), '\0');
  }
  put_text(field, "1234567");
  put_text(field, "a");
  EXPECT_EQ(field, (std::array<char, 8>{'a'}))
      << "records are compared by bytes: nothing of an older text stays";
}

TEST(FixedText, WithoutItsZeroEndsWithTheField) {
  std::array<char, 8> field;
  field.fill('y');
  EXPECT_EQ(get_text(field), "yyyyyyyy");
}

TEST(Progress, SaysWhetherAndWhy) {
  EXPECT_EQ(Progress::of({}).ok, 1u);
  EXPECT_EQ(get_text(Progress::of({}).why), "");
  const Progress failed = Progress::of(Error{"out of memory"});
  EXPECT_EQ(failed.ok, 0u);
  EXPECT_EQ(get_text(failed.why), "out of memory");
}

TEST(FirstFailure, NamesTheFirstRankThatFailed) {
  std::vector<Progress> table(4, Progress::of({}));
  EXPECT_EQ(first_failure(table, "fails"), std::nullopt);
  table[3] = Progress::of(Error{"late"});
  EXPECT_EQ(first_failure(table, "fails"), "rank 3 fails: late");
  table[1] = Progress::of(Error{"early"});
  EXPECT_EQ(first_failure(table, "fails"), "rank 1 fails: early");
}

/// What a rank with another idea of the record, or with broken memory, may have sent.
TEST(FirstFailure, TrustsNothingInTheRecord) {
  std::vector<Progress> table(2, Progress::of({}));
  for (const uint32_t ok : {0u, 2u, 0x01000000u, UINT32_MAX}) {
    table[1].ok = ok;
    table[1].why.fill('z');
    table[1].address.process = ~uint64_t{0};  // no zero behind the text
    const auto failure = first_failure(table, "fails");
    ASSERT_TRUE(failure) << ok;
    EXPECT_EQ(*failure, "rank 1 fails: " + std::string(table[1].why.size(), 'z'));
  }
}

}  // namespace
}  // namespace onehop::test
