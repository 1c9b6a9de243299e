// The real libnccl, which loads the plugin itself or finds it preloaded. Without a GPU only calls without a
// communicator work: every call must be seen, however it gets there, and what comes back must be what stock
// NCCL returns.
#include "test/object/jobs.hpp"
#include "test/object/nccl_library.hpp"

namespace onehop::test {
namespace {

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (!nccl_.found()) GTEST_SKIP() << NcclLibrary::kReason;
  }

  Environment with(Environment environment) const {
    environment["LD_LIBRARY_PATH"] = nccl_.folder();
    environment.emplace("ONEHOP_TEST_PLUGIN", PLUGIN);
    return environment;
  }
  Outcome script(const std::vector<std::string>& steps, const Environment& environment) const {
    return run_script(steps, with(environment));
  }
  Outcome linked(const std::string& way, const Environment& environment) const {
    return run({program("linked_job_" + way)}, with(environment));
  }
  std::string open(const std::string& how = "open") const { return how + ":" + nccl_.path(); }

  NcclLibrary nccl_;
};

/// The results are stock's, and every ncclAllReduce was seen; where `seen` is false none was, and nothing was
/// loaded.
void expect_stock_results(const Outcome& outcome, const Outcome& stock, bool seen = true) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(stock.status, 0) << stock.err;
  const std::vector<CallLine> calls = calls_of(outcome), expected = calls_of(stock);
  ASSERT_EQ(calls.size(), expected.size()) << outcome.out;
  int all_reduces = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call, expected[i].call);
    EXPECT_EQ(calls[i].result, expected[i].result) << calls[i].call;
    EXPECT_EQ(expected[i].seen, -1) << "the stock run was none";
    const bool unique_id = calls[i].call.find("UniqueId") != std::string::npos;
    const bool all_reduce = calls[i].call.find("AllReduce") != std::string::npos;
    EXPECT_EQ(calls[i].seen, unique_id || !seen ? -1
                             : all_reduce       ? 1
                                                : 0)
        << calls[i].call << "\n"
        << outcome.out;
    if (!all_reduce) continue;
    ++all_reduces;
    EXPECT_EQ(calls[i].result, 4) << "ncclInvalidArgument";
  }
  EXPECT_GE(all_reduces, 4) << outcome.out;
}

/// Nothing was said but by NCCL.
void expect_no_word(const Outcome& outcome) {
  EXPECT_EQ(lines_with(outcome.err, "onehop"), 0) << outcome.err;
}

using Linked = Nccl;

TEST_F(Linked, EveryKindOfCallIsSeen) {
  for (const char* way : {"lazy", "now", "no_plt", "fixed"}) {
    SCOPED_TRACE(way);
    const Outcome stock = linked(way, {});
    for (const char* variable : {"NCCL_ENV_PLUGIN", "LD_PRELOAD"}) {
      SCOPED_TRACE(variable);
      const Outcome outcome = linked(way, {{variable, PLUGIN}});
      expect_stock_results(outcome, stock);
      expect_no_word(outcome);
    }
  }
}

/// A job that is resolved at once, whatever it was linked for.
TEST_F(Linked, AndWithBindingAtStart) {
  const Outcome stock = linked("lazy", {{"LD_BIND_NOW", "1"}});
  for (const char* variable : {"NCCL_ENV_PLUGIN", "LD_PRELOAD"})
    expect_stock_results(linked("lazy", {{variable, PLUGIN}, {"LD_BIND_NOW", "1"}}), stock);
}

using Opened = Nccl;

TEST_F(Opened, PointersFromBeforeAreSeen) {
  for (const char* how : {"open", "open-deep", "open-global"}) {
    SCOPED_TRACE(how);
    const std::vector<std::string> steps = {open(how), "unique:0", "call:0"};
    const Outcome stock = script(steps, {});
    for (const char* variable : {"NCCL_ENV_PLUGIN", "LD_PRELOAD"}) {
      SCOPED_TRACE(variable);
      const Outcome outcome = script(steps, {{variable, PLUGIN}});
      expect_stock_results(outcome, stock);
      expect_no_word(outcome);
    }
  }
}

/// CuPy beside torch: two files, each with its own state.
TEST_F(Opened, ASecondCopyIsSeenWheneverItCame) {
  const std::string copy = "open:" + nccl_.copy();
  const std::vector<std::vector<std::string>> orders = {
      {open(), copy, "unique:0", "call:0", "call:1"},
      {open(), "unique:0", copy, "call:0", "call:1"},
      {copy, open("open-deep"), "unique:1", "call:0", "call:1"}};
  for (std::vector<std::string> steps : orders) {
    const Outcome stock = script(steps, {});
    for (const char* variable : {"NCCL_ENV_PLUGIN", "LD_PRELOAD"}) {
      SCOPED_TRACE(variable);
      expect_stock_results(script(steps, {{variable, PLUGIN}}), stock);
    }
    steps.push_back("images");
    EXPECT_EQ(lines_with(script(steps, {{"NCCL_ENV_PLUGIN", PLUGIN}}).out, "images 2"), 1);
  }
}

/// Both at once: the job preloads it and NCCL loads it again.
TEST_F(Opened, PreloadedAndLoadedByNcclIsOne) {
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  const Outcome outcome = script(steps, {{"LD_PRELOAD", PLUGIN}, {"NCCL_ENV_PLUGIN", PLUGIN}});
  expect_stock_results(outcome, script(steps, {}));
  expect_no_word(outcome);
}

TEST_F(Nccl, SaysThatItOpenedThePluginAndDoesNotUseIt) {
  const Outcome outcome =
      script({open(), "unique:0", "call:0"}, {{"NCCL_ENV_PLUGIN", PLUGIN}, {"NCCL_DEBUG", "INFO"}});
  EXPECT_EQ(outcome.status, 0);
  // NCCL logs to standard output.
  const std::string& log = outcome.out;
  EXPECT_EQ(lines_with(log, "NCCL_ENV_PLUGIN set by environment to " PLUGIN), 1) << log;
  EXPECT_EQ(lines_with(log, "External env plugin " PLUGIN " is unsupported"), 1) << log;
  EXPECT_EQ(lines_with(log, "Closing env plugin ncclEnvDefault"), 1) << "its own is used\n" << log;
  EXPECT_EQ(lines_with(log, "Could not find"), 0) << log;
}

/// The same NCCL_DEBUG output with a disabled and with an enabled onehop: what NCCL does is untouched.
TEST_F(Nccl, LogsAsItDoesWithoutThePlugin) {
  const auto log_with = [&](const Environment& environment) {
    std::vector<std::string> lines;
    for (std::string line : script({open(), "unique:0"}, environment).lines()) {
      // Host, process and thread ids differ from run to run.
      if (const size_t at = line.find(" NCCL "); at != std::string::npos) line = line.substr(at);
      lines.push_back(line);
    }
    return lines;
  };
  const auto stock = log_with({{"NCCL_DEBUG", "INFO"}});
  EXPECT_GE(stock.size(), 2u);
  EXPECT_EQ(log_with({{"NCCL_DEBUG", "INFO"}, {"LD_PRELOAD", PLUGIN}}), stock);
}

using Names = Nccl;

/// A value that leads nowhere must leave stock NCCL, and say nothing of onehop.
TEST_F(Names, AWrongOneLeavesStock) {
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  const Outcome stock = script(steps, {});
  const std::string plugin = PLUGIN, folder = plugin.substr(0, plugin.rfind('/'));
  for (const std::string& value :
       {std::string("none"), std::string(""), std::string("/nowhere/libnccl-net-onehop.so"), folder,
        folder + "/libnccl-net-onehop.s", std::string("onehop-nowhere"), std::string(300, 'x'),
        "/" + std::string(5000, 'x')}) {
    SCOPED_TRACE(value.substr(0, 80));
    const Outcome outcome = script(steps, {{"NCCL_ENV_PLUGIN", value}});
    expect_stock_results(outcome, stock, false);
    expect_no_word(outcome);
  }
}

/// A file that is no library at all.
TEST_F(Names, AFileThatIsNoLibraryLeavesStock) {
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  expect_stock_results(script(steps, {{"NCCL_ENV_PLUGIN", "/etc/passwd"}}), script(steps, {}), false);
}

/// By file name, found through LD_LIBRARY_PATH, as a container sets it up.
TEST_F(Names, TheFileNameIsEnoughOnTheLibraryPath) {
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  const std::string plugin = PLUGIN, folder = plugin.substr(0, plugin.rfind('/'));
  Environment environment = with({{"NCCL_ENV_PLUGIN", "libnccl-net-onehop.so"}});
  environment["LD_LIBRARY_PATH"] += ":" + folder;
  const Outcome outcome = run_script(steps, environment);
  expect_stock_results(outcome, script(steps, {}));
}

/// Paths as long as file systems allow. NCCL cuts long values, so the job must run, with onehop or without.
TEST_F(Names, AVeryLongPathDoesNoHarm) {
  const Folder folder;
  std::string path = folder.path();
  while (path.size() < 280) {
    path += "/" + std::string(60, 'd');
    std::filesystem::create_directory(path);
  }
  path += "/libnccl-net-onehop.so";
  std::filesystem::create_symlink(PLUGIN, path);
  ASSERT_GT(path.size(), 300u);
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  const Outcome stock = script(steps, {}), outcome = script(steps, {{"NCCL_ENV_PLUGIN", path}});
  expect_stock_results(outcome, stock, !calls_of(outcome).empty() && calls_of(outcome).back().seen != -1);
  expect_no_word(outcome);
  // The loader has no such limit.
  expect_stock_results(script(steps, {{"LD_PRELOAD", path}}), stock);
}

/// The values that only NCCL's other plugin variables take from some release on: a list, as NCCL_ENV_PLUGIN
/// reads it.
TEST_F(Names, AListDoesNoHarm) {
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  const Outcome stock = script(steps, {});
  for (const std::string& value :
       {std::string(PLUGIN ",libnccl-net.so"), std::string("libnccl-net.so," PLUGIN),
        std::string(PLUGIN "," PLUGIN), std::string(",")}) {
    SCOPED_TRACE(value);
    const Outcome outcome = script(steps, {{"NCCL_ENV_PLUGIN", value}});
    expect_stock_results(outcome, stock, !calls_of(outcome).empty() && calls_of(outcome).back().seen != -1);
    expect_no_word(outcome);
  }
}

/// Off, or wrongly set: stock results, each call passed on, and for a wrong value one line.
TEST_F(Nccl, RunsOnStockWhateverTheSettings) {
  const std::vector<std::string> steps = {open(), "unique:0", "call:0"};
  const Outcome stock = script(steps, {});
  const Outcome off = script(steps, {{"NCCL_ENV_PLUGIN", PLUGIN}, {"ONEHOP_ENABLE", "0"}});
  expect_stock_results(off, stock);
  expect_no_word(off);
  const Outcome wrong = script(steps, {{"NCCL_ENV_PLUGIN", PLUGIN}, {"ONEHOP_ALGO", "1-stage"}});
  expect_stock_results(wrong, stock);
  EXPECT_EQ(lines_with(wrong.err, "onehop"), 1) << wrong.err;
  EXPECT_EQ(lines_with(wrong.err, "ONEHOP_ALGO=1-stage: not understood; allowed: auto, oneshot (or 1stage)"),
            1)
      << wrong.err;
}

}  // namespace
}  // namespace onehop::test
