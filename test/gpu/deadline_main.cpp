// main() of the tests on a GPU: a kernel that waits for ever must not keep the machine.
#include <gtest/gtest.h>
#include <unistd.h>

int main(int argc, char** argv) {
  alarm(ONEHOP_TEST_DEADLINE_S);  // whatever happens
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
