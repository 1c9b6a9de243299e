// patch_release FILE: redirects the functions of one libnccl and compares what they return with an untouched
// second mapping of the file. Prints one line: "patched N of M", "results R of N as stock", and for each
// function its entry.
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "plugin/interpose/interpose.hpp"
#include "test/interpose/nccl_calls.hpp"

using namespace onehop::interpose;
using namespace onehop::interpose::test;

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: patch_release LIBNCCL\n"), 2;
  void* stock = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL);
  void* hooked = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (stock == nullptr || hooked == nullptr) return std::printf("not loadable: %s\n", dlerror()), 1;

  const std::vector<Image> images = images_defining("ncclAllReduce");
  if (images.size() != 1) return std::printf("%zu images\n", images.size()), 1;
  auto patch = Patch::prepare(images[0], CountingHooks::all());
  if (!patch) return std::printf("refused: %s\n", patch.reason().c_str()), 1;
  const onehop::Status installed = patch->install();
  if (!installed) return std::printf("not installed: %s\n", installed.reason().c_str()), 1;

  size_t patched = 0, same = 0;
  std::string detail;
  for (size_t i = 0; i < kNcclFunctionCount; ++i) {
    void* entry = dlsym(hooked, kNcclFunctions[i]);
    if (entry == nullptr) continue;
    ++patched;
    const int expected = call_without_comm(i, dlsym(stock, kNcclFunctions[i]));
    const int got = call_without_comm(i, entry);
    const bool good = got == expected && CountingHooks::calls[i] == 1;
    same += good;
    char text[96];
    std::snprintf(text, sizeof text, "%s%s=%d(%zu)", detail.empty() ? "" : " ", kNcclFunctions[i] + 4, got,
                  reinterpret_cast<uintptr_t>(entry) % 64);
    detail += text;
    if (!good)
      detail += "!stock=" + std::to_string(expected) + ",calls=" + std::to_string(CountingHooks::calls[i]);
  }
  std::printf("%zu|%zu|%s|%s\n", patched, same, patch->intact() ? "intact" : "NOT INTACT", detail.c_str());
  return same == patched ? 0 : 1;
}
