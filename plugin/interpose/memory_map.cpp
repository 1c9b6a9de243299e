#include "plugin/interpose/memory_map.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace onehop::interpose {

Result<std::vector<Region>> mapped_regions() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/maps", "re"), &std::fclose);
  if (!file) return Error{"/proc/self/maps cannot be read"};

  std::vector<Region> regions;
  // Paths can have any length: getline grows the buffer.
  struct Line {
    char* text = nullptr;
    size_t capacity = 0;
    ~Line() { std::free(text); }
  } line;
  while (getline(&line.text, &line.capacity, file.get()) > 0) {
    unsigned long begin, end;
    char read, write, execute;
    if (std::sscanf(line.text, "%lx-%lx %c%c%c", &begin, &end, &read, &write, &execute) != 5)
      return Error{"/proc/self/maps has an unknown form"};
    regions.push_back(
        {begin, end,
         (read == 'r' ? PROT_READ : 0) | (write == 'w' ? PROT_WRITE : 0) | (execute == 'x' ? PROT_EXEC : 0)});
  }
  if (regions.empty()) return Error{"/proc/self/maps is empty"};
  return regions;
}

}  // namespace onehop::interpose
