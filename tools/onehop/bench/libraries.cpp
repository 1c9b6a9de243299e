#include "tools/onehop/bench/libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <vector>

namespace onehop::bench {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// Empty: all functions were found; else the name of one that was not.
std::string find_all(void* library, Cuda& cuda) {
#define ONEHOP_BENCH_FIND(name) \
  if (!find(library, "cuda" #name, cuda.name)) return "cuda" #name;
  ONEHOP_BENCH_CUDA(ONEHOP_BENCH_FIND)
  ONEHOP_BENCH_FIND(Malloc)
#undef ONEHOP_BENCH_FIND
  return "";
}

std::string find_all(void* library, Nccl& nccl) {
#define ONEHOP_BENCH_FIND(name) \
  if (!find(library, "nccl" #name, nccl.name)) return "nccl" #name;
  ONEHOP_BENCH_NCCL(ONEHOP_BENCH_FIND)
#undef ONEHOP_BENCH_FIND
  return "";
}

#ifdef ONEHOP_BENCH_STATIC_CUDART
Cuda built_in() {
  Cuda cuda;
#define ONEHOP_BENCH_TAKE(name) cuda.name = &::cuda##name;
  ONEHOP_BENCH_CUDA(ONEHOP_BENCH_TAKE)
  ONEHOP_BENCH_TAKE(Malloc)
#undef ONEHOP_BENCH_TAKE
  return cuda;
}
#endif

/// Only the major release that this was built for: structures differ between them.
Result<Cuda> open_cudart(const std::string& path) {
  const std::vector<std::string> names =
      path.empty() ? std::vector<std::string>{"libcudart.so." + std::to_string(CUDART_VERSION / 1000)}
                   : std::vector<std::string>{path};
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Cuda cuda;
    const std::string missing = find_all(library, cuda);
    if (missing.empty()) return cuda;
    return Error{std::string(name).append(" has no ").append(missing)};
  }
  return Error{"the CUDA runtime (" + names.front() +
               ") was not found: add its folder to LD_LIBRARY_PATH, or name the file with --cudart"};
}

Result<Cuda> choose_cuda(void* nccl, const std::string& path) {
  if (!path.empty()) return open_cudart(path);
  Cuda cuda;
  // Looks into what libnccl itself needs, too. NCCL's own releases hold a CUDA runtime that nobody else sees.
  if (find_all(nccl, cuda).empty()) return cuda;
#ifdef ONEHOP_BENCH_STATIC_CUDART
  return built_in();
#else
  return open_cudart("");
#endif
}

}  // namespace

Result<Libraries> load_libraries(const std::string& nccl, const std::string& cudart) {
  void* library = dlopen(nccl.empty() ? "libnccl.so.2" : nccl.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{std::string("NCCL could not be loaded: ") + dlerror() +
                 "; add its folder to LD_LIBRARY_PATH, or name the file with --nccl"};
  Libraries libraries;
  const std::string missing = find_all(library, libraries.nccl);
  if (!missing.empty()) return Error{"this libnccl has no " + missing};
  libraries.standin = dlsym(library, "onehop_standin_device") != nullptr;
  Result<Cuda> cuda = choose_cuda(library, cudart);
  if (!cuda) return cuda.error();
  libraries.cuda = *cuda;
  return libraries;
}

LoadedOnehop find_onehop() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* found) {
        if (std::strstr(object->dlpi_name, "libnccl-net-onehop") == nullptr) return 0;
        *static_cast<std::string*>(found) = object->dlpi_name;
        return 1;
      },
      &path);
  LoadedOnehop onehop;
  void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return onehop;
  find(library, "onehopVersion", onehop.version);
  find(library, "onehopGetCommStatus", onehop.status);
  return onehop;
}

}  // namespace onehop::bench
