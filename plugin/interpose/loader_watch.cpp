// Being told of dlopen and dlclose the way a debugger is.
//
// The loader calls the function at _r_debug.r_brk, which does nothing, whenever it starts or has finished
// changing the list of objects; a debugger puts a breakpoint there. Redirecting it leaves dlopen itself
// alone, and with it whose RUNPATH and $ORIGIN the loader uses.
//
// What holds at the call with RT_CONSISTENT (tested with glibc 2.36): the new object and all that it needs
// are mapped and listed, and no constructor of theirs has run; in 2.36 and before they are not relocated, so
// that their own code must not be called, but their text and their dynamic symbols are as they will be.
// Releases that notify after relocation (2.41; not tested) keep that order towards constructors. After
// dlclose the object is unmapped and not listed. Since 2.35 each dlmopen namespace has an r_debug of its own
// but all share the function: for a change in another namespace the state read here is this namespace's,
// which is consistent, so that `changed` is called once too often; it finds nothing new.
//
// Saving no registers is right: r_brk is called from other translation units of the loader by the C calling
// convention.
#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <cstring>

#include "plugin/interpose/code_arena.hpp"
#include "plugin/interpose/code_writer.hpp"
#include "plugin/interpose/interpose.hpp"
#include "plugin/interpose/stub.hpp"

namespace onehop::interpose {
namespace {

/// The one global state of this folder: the loader's call-back has no argument to carry it.
struct Watch {
  void (*changed)() = nullptr;
  const r_debug* debug = nullptr;
  // Read and written only by loader_changed(), which the loader calls with its lock held: needs no atomics.
  bool running = false;
} watch;

void loader_changed() {
  // Whatever `changed` does, a dlopen in it (which it must not do) does not end in endless recursion.
  if (watch.running || watch.debug->r_state != r_debug::RT_CONSISTENT) return;
  watch.running = true;
  const int saved = errno;
  watch.changed();
  errno = saved;
  watch.running = false;
}

/// The loader's description of itself, found as a debugger finds it. Not through the symbol in the first
/// place: an executable may hold a copy of it, made when it was linked, that the loader does not keep.
const r_debug* find_r_debug() {
  const r_debug* found = nullptr;
  const auto visit = [](dl_phdr_info* object, size_t, void* data) -> int {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
      auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
      for (; entry->d_tag != DT_NULL; ++entry)
        if (entry->d_tag == DT_DEBUG)
          *static_cast<const r_debug**>(data) = reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
    }
    return 1;  // only the first, the executable
  };
  dl_iterate_phdr(visit, &found);
  return found != nullptr ? found : static_cast<const r_debug*>(dlsym(RTLD_DEFAULT, "_r_debug"));
}

Status redirect(unsigned char* function) {
  const Result<Decoder> decoder = Decoder::create();
  if (!decoder) return decoder.error();
  const Result<unsigned char*> at = examine_empty_function(*decoder, function);
  if (!at) return Error{"the loader's debugger notification cannot be redirected: " + at.reason()};

  const auto address = reinterpret_cast<uintptr_t>(*at);
  Result<CodeArena> arena = CodeArena::map_near(address, address + kJumpSize, kStubSize);
  if (!arena) return arena.error();
  const auto stub = make_stub(reinterpret_cast<const void*>(&loader_changed), 0);
  std::memcpy(arena->data(), stub.data(), stub.size());
  if (Status sealed = arena->seal(); !sealed) return sealed;
  const Result<JumpBytes> jump = make_jump(*at, arena->data());
  if (!jump) return jump.error();

  Result<WritableCode> code = WritableCode::open({*at});
  if (!code) return code.error();
  arena->keep();
  code->write(*at, *jump);
  return {};
}

}  // namespace

Status watch_loader(void (*changed)()) try {
  if (watch.changed != nullptr) return Error{"the loader is being watched already"};
  const r_debug* debug = find_r_debug();
  if (debug == nullptr || debug->r_version < 1 || debug->r_brk == 0)
    return Error{"the loader offers no debugger notification"};
  // Before the redirection, which publishes them.
  watch.debug = debug;
  watch.changed = changed;
  Status redirected = redirect(reinterpret_cast<unsigned char*>(debug->r_brk));
  if (!redirected) watch = {};
  return redirected;
} catch (const std::exception& exception) {
  watch = {};
  return Error{std::string("the loader cannot be watched: ") + exception.what()};
}

}  // namespace onehop::interpose
