// Files that the settings name: nothing that was put there beforehand is written through or waited for.
#include "plugin/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace onehop::test {
namespace {

class OutputFile : public testing::Test {
 protected:
  OutputFile() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~OutputFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Whether it could be written; then it was.
  static bool write(const std::string& path, WriteMode mode) {
    const Result<std::FILE*> file = open_output_file(path, mode);
    if (!file) {
      EXPECT_EQ(file.reason().rfind(path + " cannot be written: ", 0), 0u) << file.reason();
      return false;
    }
    std::fputs("new", *file);
    std::fclose(*file);
    return true;
  }
  static void put(const std::string& path) { std::ofstream(path) << "old and long"; }

 private:
  std::string folder_ = "/tmp/onehop-unit-XXXXXX";
};

TEST_F(OutputFile, IsMadeReplacedOrContinued) {
  EXPECT_TRUE(write(path("a"), WriteMode::kReplace));
  EXPECT_EQ(read(path("a")), "new");
  struct stat status;
  ASSERT_EQ(stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0133, 0u) << "no more than reading for others";
  put(path("b"));
  EXPECT_TRUE(write(path("b"), WriteMode::kReplace));
  EXPECT_EQ(read(path("b")), "new");
  EXPECT_TRUE(write(path("b"), WriteMode::kAppend));
  EXPECT_EQ(read(path("b")), "newnew");
  EXPECT_TRUE(write("/dev/null", WriteMode::kReplace));
  EXPECT_TRUE(write("/dev/null", WriteMode::kAppend));
}

TEST_F(OutputFile, IsNotWrittenThroughALink) {
  put(path("mine"));
  std::filesystem::create_symlink(path("mine"), path("symbolic"));
  std::filesystem::create_symlink(path("not yet"), path("dangling"));
  put(path("other"));
  std::filesystem::create_hard_link(path("other"), path("hard"));
  for (const WriteMode mode : {WriteMode::kAppend, WriteMode::kReplace}) {
    for (const char* name : {"symbolic", "dangling", "hard"}) EXPECT_FALSE(write(path(name), mode)) << name;
    EXPECT_EQ(read(path("mine")), "old and long");
    EXPECT_EQ(read(path("other")), "old and long");
    EXPECT_FALSE(std::filesystem::exists(path("not yet")));
  }
}

TEST_F(OutputFile, DoesNotWaitForAReaderOfAFifo) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  alarm(10);
  EXPECT_FALSE(write(path("fifo"), WriteMode::kReplace));
  alarm(0);
}

TEST_F(OutputFile, SaysWhyItCannotBe) {
  const Result<std::FILE*> file = open_output_file(path("no/folder"), WriteMode::kReplace);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.reason(), path("no/folder") + " cannot be written: No such file or directory");
}

TEST(PathOfProcess, HasTheIdForEachMark) {
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(path_of_process("/a/b"), "/a/b");
  EXPECT_EQ(path_of_process("%p/x.%p"), pid + "/x." + pid);
}

}  // namespace
}  // namespace onehop::test
