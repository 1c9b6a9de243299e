// The verdict over all cases, the exit code, the file, and the suggestions.
#include "tools/onehop/bench/report.hpp"

#include <gtest/gtest.h>

namespace onehop::bench {
namespace {

SideFigures figures(double us, bool taken = false, size_t wrong = 0) {
  SideFigures side;
  side.us = us;
  side.us_p99 = us * 1.1;
  side.samples = 10;
  side.taken = taken;
  side.wrong = wrong;
  return side;
}

/// NCCL 10 µs, onehop and a rival as told.
Outcome outcome(double onehop_us, bool taken, double rival_us) {
  Outcome made;
  made.sides = {{"NCCL", false, "", {}},
                {"onehop", true, "", {}},
                {"NCCL with NCCL_PROTO=LL", false, "NCCL_PROTO=LL", {{"NCCL_PROTO", "LL"}}}};
  made.ranks = made.processes = made.gpus = 2;
  made.ranks_per_gpu = 1;
  made.gpu = "GPU";
  made.links = "none";
  made.onehop = "0.1.0";
  made.nccl = 22809;
  made.cuda = 13000;
  made.on = true;
  made.max_bytes = 512 << 10;
  Case what;
  what.type = find_type("bfloat16");
  what.bytes = 43008;
  what.calls = 100;
  made.cases = {{what, {figures(10), figures(onehop_us, taken), figures(rival_us)}, 1}};
  return made;
}

bool says(const Outcome& outcome, const std::string& text) {
  return report(outcome).find(text) != std::string::npos;
}

TEST(Report, TheExitCodeIsTheWorst) {
  EXPECT_EQ(exit_code(outcome(4, true, 9)), kGood);
  EXPECT_EQ(exit_code(outcome(10.1, false, 9)), kGood);
  EXPECT_EQ(exit_code(outcome(10.3, false, 9)), kSlower);
  Outcome both = outcome(10.3, false, 9);
  both.cases.front().sides[0].wrong =
      1;  // NCCL's own wrong results count, too: nothing else can be trusted then
  EXPECT_EQ(exit_code(both), kWrong);
  EXPECT_TRUE(says(both, "WRONG"));
  EXPECT_TRUE(says(both, "NCCL: 1 elements wrong"));
}

TEST(Report, ALaterLookDecidesButWhatWasWrongStaysWrong) {
  Outcome looked = outcome(10.3, false, 9);
  CaseFigures& one = looked.cases.front();
  one.looks = 2;
  CaseFigures anew = outcome(10.1, false, 9).cases.front();
  one.replace_by(anew);
  EXPECT_EQ(exit_code(looked), kGood);
  EXPECT_TRUE(says(looked, "as fast, passed to NCCL, look 3"));
  anew.sides[1].wrong = 2;
  one.replace_by(anew);
  one.replace_by(outcome(10.1, false, 9).cases.front());
  EXPECT_EQ(exit_code(looked), kWrong);
  EXPECT_TRUE(says(looked, "onehop: 2 elements wrong"));
}

/// Every verdict stands; only why there was no further look is said.
TEST(Report, ALookThatWasNotTakenIsSaid) {
  Outcome looked = outcome(10.3, false, 9);
  looked.why_left = "interrupted";
  EXPECT_EQ(exit_code(looked), kSlower);
  EXPECT_TRUE(says(looked, "Not measured: what seemed slower, with other communicators: interrupted"));
}

TEST(Report, TimesOfTheStandInDecideNothing) {
  Outcome standin = outcome(20, true, 9);
  standin.standin = true;
  EXPECT_EQ(exit_code(standin), kGood);
  EXPECT_TRUE(says(standin, "slower in 1"));
  EXPECT_TRUE(says(standin, "say nothing about GPUs"));
  standin.cases.front().sides[1].wrong = 1;
  EXPECT_EQ(exit_code(standin), kWrong);
}

TEST(Report, ATableSaysWhatWasMeasured) {
  const std::string text = report(outcome(4, true, 8));
  for (const char* part : {"2 ranks in 2 processes on 2x GPU (none)", "NCCL 2.28.9", "ON, up to 512 KiB",
                           "42 KiB", "2.50x", "8.00 PROTO=LL", "2.00x", "faster", "all results are right"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
}

TEST(Report, TheFirstCallAndTheMemoryAreSaid) {
  Outcome measured = outcome(4, true, 8);
  measured.nccl_first_call_ms = 12;
  measured.first_call_ms = 20;
  measured.set_up_ms = 7;
  measured.staging_bytes = 13 << 20;
  EXPECT_TRUE(says(measured, "ON, up to 512 KiB, with 13 MiB of staging on each rank\n"));
  EXPECT_TRUE(says(measured,
                   "First call: 12.00 ms with NCCL, which connects in it; 20.00 ms with onehop, 7.00 of them "
                   "for its set-up\n"));
  const Json file = result_file(measured, {});
  EXPECT_EQ(file.at("staging_bytes"), 13 << 20);
  EXPECT_EQ(file.at("set_up_ms"), 7);
  EXPECT_EQ(file.at("first_call_ms").at("nccl"), 12);
  EXPECT_EQ(file.at("first_call_ms").at("onehop"), 20);
}

TEST(Report, AModelsStepIsSummedUp) {
  Outcome decode = outcome(4, true, 8);
  decode.cases.front().what.note = "Model x1";
  EXPECT_TRUE(says(decode, "             1.00    0.40   faster  Model x1\n"));
}

TEST(Report, SettingsAreSuggestedOnlyWhereOnehopDoesNotHelp) {
  EXPECT_TRUE(says(outcome(10, false, 8), "NCCL_PROTO=LL: 42 KiB graph 10.0 -> 8.00"));
  EXPECT_FALSE(says(outcome(4, true, 3), "these settings"));      // onehop is faster than the default
  EXPECT_FALSE(says(outcome(10, false, 9.8), "these settings"));  // nothing gained
}

TEST(Report, TheBestNcclIsTheFastestThatIsNotOnehop) {
  EXPECT_EQ(best_nccl(outcome(4, true, 8), outcome(4, true, 8).cases.front()), 2U);
  EXPECT_EQ(best_nccl(outcome(4, true, 11), outcome(4, true, 11).cases.front()), 0U);
}

TEST(Report, TheFileHasARowForEachSide) {
  Options options;
  options.command = "onehop bench";
  Outcome measured = outcome(4, true, 8);
  measured.skipped = {{measured.cases.front().what, "no room"}};
  const Json file = result_file(measured, options);
  ASSERT_EQ(file.at("rows").size(), 3U);
  const Json& onehop = file.at("rows")[1];
  EXPECT_EQ(onehop.at("side"), "onehop");
  EXPECT_EQ(onehop.at("plan"), "auto");
  EXPECT_EQ(onehop.at("verdict"), "faster");
  EXPECT_DOUBLE_EQ(onehop.at("speed_up").get<double>(), 2.5);
  EXPECT_EQ(file.at("rows")[2].at("method"), "NCCL_PROTO=LL");
  EXPECT_EQ(file.at("cuda"), "13.0");
  EXPECT_EQ(file.at("not_measured")[0], "graph of 42 KiB: no room");
}

}  // namespace
}  // namespace onehop::bench
