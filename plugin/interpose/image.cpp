// Finds the mapped objects that define a function.
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "plugin/interpose/dynamic_symbols.hpp"
#include "plugin/interpose/interpose.hpp"

namespace onehop::interpose {
namespace {

struct Extent {
  uintptr_t begin = 0, end = 0;
  const void* dynamic = nullptr;
};

Extent extent_of(const dl_phdr_info& object) {
  Extent extent;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) extent.dynamic = reinterpret_cast<const void*>(begin);
    if (header.p_type != PT_LOAD || header.p_memsz == 0) continue;
    if (extent.end == 0 || begin < extent.begin) extent.begin = begin;
    extent.end = std::max<uintptr_t>(extent.end, begin + header.p_memsz);
  }
  return extent;
}

std::string executable_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "the executable";
}

}  // namespace

Image::Symbol Image::find(const char* name) const {
  return find_function({base_, begin_, end_, dynamic_}, name);
}

// dl_iterate_phdr is safe from loader_watch's call-back too, where a new object is listed but not yet
// relocated: any thread that throws an exception while another one runs dlopen walks the same list in the
// same state.
std::vector<Image> images_defining(const char* name) {
  struct Search {
    const char* name;
    std::vector<Image> images;
  } search{name, {}};

  const auto visit = [](dl_phdr_info* object, size_t, void* data) -> int {
    auto& found = *static_cast<Search*>(data);
    const Extent extent = extent_of(*object);
    const auto holds = [&](uintptr_t address) { return address >= extent.begin && address < extent.end; };
    const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (extent.dynamic == nullptr || (vdso != 0 && holds(vdso))) return 0;
    if (holds(reinterpret_cast<uintptr_t>(&images_defining))) return 0;  // this code's own object
    // No exception may cross the loader's frames: an object that there is no memory for is not found.
    try {
      Image image;
      image.base_ = object->dlpi_addr;
      image.begin_ = extent.begin;
      image.end_ = extent.end;
      image.dynamic_ = extent.dynamic;
      if (image.find(found.name).address == nullptr) return 0;
      const bool named = object->dlpi_name != nullptr && *object->dlpi_name != '\0';
      image.path_ = named ? object->dlpi_name : executable_path();
      found.images.push_back(std::move(image));
    } catch (...) {
    }
    return 0;
  };
  dl_iterate_phdr(visit, &search);
  return std::move(search.images);
}

}  // namespace onehop::interpose
