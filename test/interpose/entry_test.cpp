// Empty functions: the one place where bytes behind a return may be overwritten.
#include "plugin/interpose/entry.hpp"

#include "test/interpose/planted.hpp"

namespace onehop::interpose::test {
namespace {

class EmptyFunction : public testing::Test {
 protected:
  Result<unsigned char*> examine(const char* symbol) {
    return examine_empty_function(*decoder_, loaded_.address(symbol));
  }
  void expect_place(const char* symbol, long offset) {
    const auto jump = examine(symbol);
    ASSERT_TRUE(jump) << symbol << ": " << jump.reason();
    EXPECT_EQ(*jump - loaded_.address(symbol), offset) << symbol;
  }
  void expect_refused(const char* symbol, const char* reason) {
    const auto jump = examine(symbol);
    ASSERT_FALSE(jump) << symbol;
    EXPECT_EQ(jump.reason(), reason) << symbol;
  }

 private:
  Loaded loaded_{PLANTED};
  Result<Decoder> decoder_ = Decoder::create();
};

TEST_F(EmptyFunction, MayBeOverwrittenWithItsPadding) {
  expect_place("empty_return", 0);
  expect_place("empty_endbr", 4);
  expect_place("empty_repz", 0);
}

TEST_F(EmptyFunction, IsRefusedWhereTheJumpWouldHitSomethingElse) {
  expect_refused("unempty_code_follows", "something other than padding follows it");
  expect_refused("unempty_no_room", "there is no room for a jump");
  expect_refused("unempty_does_something", "it is not empty");
  expect_refused("bad_breakpoint", "it is not empty");
  expect_refused("bad_jump32", "it is not empty");
}

}  // namespace
}  // namespace onehop::interpose::test
