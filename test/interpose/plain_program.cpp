// Opens an object and says what its function returned to its own constructor and returns to us.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* late = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (late == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  auto* seen = static_cast<long*>(dlsym(late, "late_seen_by_constructor"));
  auto value = reinterpret_cast<long (*)(long)>(dlsym(late, "late_value"));
  std::printf("constructor %ld, dlsym %ld\n", *seen, value(5));
}
