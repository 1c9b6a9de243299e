// Redirecting functions: what is taken over, what is refused, and that a refusal changes nothing.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "plugin/interpose/memory_map.hpp"
#include "test/interpose/planted.hpp"

namespace onehop::interpose::test {
namespace {

// --- functions that can be taken over

class Redirected : public testing::TestWithParam<std::string> {};

TEST_P(Redirected, IsCalledAndTheOriginalStillWorks) {
  const std::string symbol = GetParam();
  const Loaded loaded(PLANTED);
  const Function function = loaded.function(symbol);
  ASSERT_NE(function, nullptr);
  const long for_seven = function(7), for_zero = function(0);

  auto patch = Patch::prepare(Loaded::image(), {Passing::hook(symbol.c_str())});
  ASSERT_TRUE(patch) << patch.reason();
  EXPECT_EQ(Passing::original, nullptr);
  EXPECT_FALSE(patch->intact());
  EXPECT_EQ(function(7), for_seven);
  EXPECT_EQ(Passing::calls, 0) << "prepare() redirected it";

  const Status installed = patch->install();
  ASSERT_TRUE(installed) << installed.reason();
  EXPECT_TRUE(patch->intact());
  EXPECT_EQ(function(0), for_zero);
  EXPECT_EQ(Passing::calls, 1);
  EXPECT_EQ(Passing::argument, 0);
  EXPECT_EQ(function(7), for_seven);
  EXPECT_GE(Passing::calls, 2);
  EXPECT_FALSE(patch->install()) << "a second time";
}

INSTANTIATE_TEST_SUITE_P(FirstInstructions, Redirected,
                         testing::Values("good_lea", "good_mov", "good_cmp", "good_cmp_imm8", "good_sse",
                                         "good_push_lea", "good_call", "good_push_call", "good_call_memory",
                                         "good_call_register", "good_branch8", "good_branch32", "good_jump8",
                                         "good_tail_call", "good_endbr", "good_endbr_pushes", "good_pushes",
                                         "good_recursion", "good_named"),
                         [](const auto& parameter) { return parameter.param; });

std::vector<std::string> at_every_place() {
  std::vector<std::string> symbols;
  for (int offset = 0; offset < 64; ++offset) {
    if (offset != 63) symbols.push_back("good_at_" + std::to_string(offset));
    symbols.push_back("good_push_at_" + std::to_string(offset));
  }
  return symbols;
}
INSTANTIATE_TEST_SUITE_P(PlacesInACacheLine, Redirected, testing::ValuesIn(at_every_place()),
                         [](const auto& parameter) { return parameter.param; });

TEST(Redirection, GivesTheReplacementsResult) {
  const Loaded loaded(PLANTED);
  void* original = nullptr;
  long (*const replacement)(long) = [](long x) { return x + 123456; };
  auto patch =
      Patch::prepare(Loaded::image(), {{"good_pushes", reinterpret_cast<void*>(replacement), &original}});
  ASSERT_TRUE(patch) << patch.reason();
  ASSERT_TRUE(patch->install());
  EXPECT_EQ(loaded.function("good_pushes")(1), 123457);
  EXPECT_EQ(reinterpret_cast<Function>(original)(1), 61);
}

TEST(Redirection, LeavesEndbrInPlace) {
  const Loaded loaded(PLANTED);
  auto patch = Patch::prepare(Loaded::image(), {Passing::hook("good_endbr")});
  ASSERT_TRUE(patch) << patch.reason();
  ASSERT_TRUE(patch->install());
  constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  EXPECT_EQ(std::memcmp(loaded.address("good_endbr"), kEndbr64, sizeof kEndbr64), 0);
  EXPECT_EQ(std::memcmp(Passing::original, kEndbr64, sizeof kEndbr64), 0);
}

TEST(Redirection, CatchesCallsByAnotherName) {
  const Loaded loaded(PLANTED);
  auto patch = Patch::prepare(Loaded::image(), {Passing::hook("weak_named")});
  ASSERT_TRUE(patch) << patch.reason();
  ASSERT_TRUE(patch->install());
  EXPECT_EQ(loaded.function("good_named")(1), 71);
  EXPECT_EQ(loaded.function("weak_named")(1), 71);
  EXPECT_EQ(Passing::calls, 2);
}

TEST(Redirection, OfBothNamesIsOneIfTheyAgree) {
  const Loaded loaded(PLANTED);
  void* other_original = nullptr;
  Hook hook = Passing::hook("good_named"), alias = hook, other = hook;
  alias.symbol = "weak_named";
  alias.original = &other_original;
  other = alias;
  other.replacement = reinterpret_cast<void*>(&at_every_place);

  const auto refused = Patch::prepare(Loaded::image(), {hook, other});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.reason().find("same function as good_named"), std::string::npos) << refused.reason();

  auto patch = Patch::prepare(Loaded::image(), {hook, alias});
  ASSERT_TRUE(patch) << patch.reason();
  ASSERT_TRUE(patch->install());
  EXPECT_EQ(Passing::original, other_original);
  EXPECT_EQ(loaded.function("good_named")(1), 71);
  EXPECT_EQ(Passing::calls, 1);
}

TEST(Redirection, LeavesOutWhatTheImageLacks) {
  const Loaded loaded(PLANTED);
  int untouched = 0;
  void* original = &untouched;
  const Hook lacking{"no_object_has_this", reinterpret_cast<void*>(&Passing::call), &original};
  auto patch = Patch::prepare(Loaded::image(), {lacking, Passing::hook("good_lea")});
  ASSERT_TRUE(patch) << patch.reason();
  ASSERT_TRUE(patch->install());
  EXPECT_EQ(original, &untouched);
  EXPECT_EQ(loaded.function("good_lea")(1), 1001);
  EXPECT_EQ(Passing::calls, 1);
}

// --- refusals

std::vector<unsigned char> text_of(const Image& image) {
  std::vector<unsigned char> text;
  const auto regions = mapped_regions();
  for (const Region& region : *regions) {
    if (region.begin < image.begin() || region.end > ((image.end() + 4095) & ~uintptr_t{4095})) continue;
    if ((region.protection & PROT_EXEC) == 0) continue;
    const auto* begin = reinterpret_cast<const unsigned char*>(region.begin);
    text.insert(text.end(), begin, begin + (region.end - region.begin));
  }
  EXPECT_FALSE(text.empty());
  return text;
}

std::vector<int> protections_of(const Image& image) {
  std::vector<int> protections;
  const auto regions = mapped_regions();
  for (const Region& region : *regions)
    for (uintptr_t page = std::max(region.begin, image.begin()); page < std::min(region.end, image.end());
         page += 4096)
      protections.push_back(region.protection);
  return protections;
}

struct Refusal {
  const char* symbol;
  const char* reason;  ///< a part of it
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithAReasonAndNothingChanged) {
  const Loaded loaded(PLANTED);
  const Image image = Loaded::image();
  const auto before = text_of(image);
  void* other = nullptr;
  const Hook good{"good_lea", reinterpret_cast<void*>(&Passing::call), &other};
  const Hook late{"good_mov", reinterpret_cast<void*>(&Passing::call), &other};
  const auto patch = Patch::prepare(image, {good, Passing::hook(GetParam().symbol), late});
  ASSERT_FALSE(patch);
  EXPECT_NE(patch.reason().find(GetParam().reason), std::string::npos) << patch.reason();
  EXPECT_NE(patch.reason().find(GetParam().symbol), std::string::npos) << patch.reason();
  EXPECT_NE(patch.reason().find(PLANTED), std::string::npos) << patch.reason();
  EXPECT_EQ(text_of(image), before);
  EXPECT_EQ(Passing::original, nullptr);
  EXPECT_EQ(other, nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Refused,
    testing::Values(Refusal{"bad_branch_back", "a branch at +0x8 goes to +0x2"},
                    Refusal{"bad_branch_back_short_only", "a branch at +0x7 goes to +0x2"},
                    Refusal{"bad_loop_to_entry", "goes to +0x0"}, Refusal{"bad_short", "shorter"},
                    Refusal{"bad_return", "returns"}, Refusal{"bad_jump8", "begins with a jump"},
                    Refusal{"bad_jump32", "begins with a jump"},
                    Refusal{"bad_jump_memory", "begins with a jump"},
                    Refusal{"bad_long_jump", "begins with a jump"}, Refusal{"bad_early_jump", "left within"},
                    Refusal{"bad_breakpoint", "breakpoint"}, Refusal{"bad_breakpoint_later", "trap"},
                    Refusal{"bad_jrcxz", "cannot be moved"}, Refusal{"bad_loop", "cannot be moved"},
                    Refusal{"bad_own_address", "its own address"}, Refusal{"bad_bytes", "cannot be decoded"},
                    Refusal{"bad_bytes_later", "cannot be decoded at +0x8"},
                    Refusal{"bad_no_size", "shorter"}, Refusal{"bad_two_lines", "two cache lines"},
                    Refusal{"bad_ifunc", "IFUNC"}),
    [](const auto& parameter) { return parameter.param.symbol; });

TEST(Redirection, IsNotMadeTwice) {
  const Loaded loaded(PLANTED);
  auto patch = Patch::prepare(Loaded::image(), {Passing::hook("good_mov")});
  ASSERT_TRUE(patch && patch->install());
  const auto again = Patch::prepare(Loaded::image(), {Passing::hook("good_mov")});
  ASSERT_FALSE(again);
  EXPECT_NE(again.reason().find("begins with a jump"), std::string::npos) << again.reason();
}

TEST(Redirection, IsNotInstalledOverAChangedEntry) {
  const Loaded loaded(PLANTED);
  auto first = Patch::prepare(Loaded::image(), {Passing::hook("good_mov")});
  auto second = Patch::prepare(Loaded::image(), {Passing::hook("good_mov")});
  ASSERT_TRUE(first && second && first->install());
  EXPECT_FALSE(second->install());
  EXPECT_TRUE(first->intact());
}

// --- a system that denies writing code

/// Denies mprotect(anything, anything, `protection`), for one page if `page` is not null. Cannot be taken
/// back.
void deny_mprotect(unsigned protection, const void* page) {
  const auto low = static_cast<unsigned>(reinterpret_cast<uintptr_t>(page));
  constexpr auto argument = [](int i) {
    return static_cast<unsigned>(offsetof(seccomp_data, args) + static_cast<unsigned>(i) * sizeof(uint64_t));
  };
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, protection, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(0)),
      BPF_JUMP(BPF_JMP | (page != nullptr ? BPF_JEQ : BPF_JGE) | BPF_K, page != nullptr ? low : 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

const void* page_of(const void* at) {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(at) & ~uintptr_t{4095});
}

/// Runs `body` in a child process and passes on its failures.
template <class Body>
void in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Denied, WritingToAnyOneFunctionChangesNone) {
  const Loaded loaded(PLANTED);
  const Image image = Loaded::image();
  ASSERT_NE(page_of(loaded.address("good_lea")), page_of(loaded.address("good_far")));
  for (const char* denied : {"good_lea", "good_far"}) {
    in_child([&] {
      void* originals[2]{};
      const auto before = text_of(image);
      const auto protections = protections_of(image);
      auto patch =
          Patch::prepare(image, {{"good_lea", reinterpret_cast<void*>(&Passing::call), &originals[0]},
                                 {"good_far", reinterpret_cast<void*>(&Passing::call), &originals[1]}});
      ASSERT_TRUE(patch) << patch.reason();
      deny_mprotect(PROT_READ | PROT_WRITE | PROT_EXEC, page_of(loaded.address(denied)));
      const Status installed = patch->install();
      ASSERT_FALSE(installed);
      EXPECT_NE(installed.reason().find("denies writing to code"), std::string::npos) << installed.reason();
      EXPECT_EQ(text_of(image), before);
      EXPECT_EQ(protections_of(image), protections);
      EXPECT_EQ(originals[0], nullptr);
      EXPECT_EQ(originals[1], nullptr);
      EXPECT_FALSE(patch->intact());
    });
  }
}

TEST(Denied, NewExecutableMemoryFailsPreparation) {
  const Loaded loaded(PLANTED);
  in_child([&] {
    deny_mprotect(PROT_READ | PROT_EXEC, nullptr);
    const auto patch = Patch::prepare(Loaded::image(), {Passing::hook("good_lea")});
    ASSERT_FALSE(patch);
    EXPECT_NE(patch.reason().find("denies new executable memory"), std::string::npos) << patch.reason();
  });
}

TEST(Redirection, PutsProtectionsBack) {
  const Loaded loaded(PLANTED);
  const Image image = Loaded::image();
  const auto protections = protections_of(image);
  auto patch = Patch::prepare(image, {Passing::hook("good_far"), Passing::hook("good_lea")});
  ASSERT_TRUE(patch && patch->install());
  EXPECT_EQ(protections_of(image), protections);
  const auto regions = mapped_regions();
  for (const Region& region : *regions)
    EXPECT_NE(region.protection & (PROT_WRITE | PROT_EXEC), PROT_WRITE | PROT_EXEC);
}

TEST(Redirection, IsNotIntactOnceTheImageIsGone) {
  auto loaded = std::make_unique<Loaded>(PLANTED);
  auto patch = Patch::prepare(Loaded::image(), {Passing::hook("good_lea")});
  ASSERT_TRUE(patch && patch->install() && patch->intact());
  loaded.reset();
  ASSERT_TRUE(images_defining("good_lea").empty());
  EXPECT_FALSE(patch->intact());
  const Loaded again(PLANTED);
  EXPECT_FALSE(patch->intact());
  auto second = Patch::prepare(Loaded::image(), {Passing::hook("good_lea")});
  ASSERT_TRUE(second && second->install());
  EXPECT_EQ(again.function("good_lea")(2), 1002);
  EXPECT_EQ(Passing::calls, 1);
}

}  // namespace
}  // namespace onehop::interpose::test
