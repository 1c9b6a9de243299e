// What a user of watch_loader() does with an object that appears later.
#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>

#include "plugin/interpose/interpose.hpp"

namespace onehop::interpose::test {

struct LateHook {
  static inline std::optional<Patch> patch;
  static inline void* original = nullptr;
  static inline int notified = 0, patched = 0;
  static inline std::string failure;

  static long value(long x) { return reinterpret_cast<long (*)(long)>(original)(x) + 1000; }

  static void changed() {
    ++notified;
    errno = 4321;  // must not reach the caller of dlopen
    for (const Image& image : images_defining("late_value")) {
      if (patch && patch->intact()) continue;
      auto prepared = Patch::prepare(image, {{"late_value", reinterpret_cast<void*>(&value), &original}});
      if (!prepared) {
        failure = prepared.reason();
        continue;
      }
      if (Status installed = prepared->install(); !installed) {
        failure = installed.reason();
        continue;
      }
      patch = std::move(*prepared);
      ++patched;
    }
  }
};

}  // namespace onehop::interpose::test
