// Symbol look-up in a mapped object's own dynamic section, without the loader's help.
#pragma once

#include "plugin/interpose/interpose.hpp"

namespace onehop::interpose {

/// Where an object lies in memory.
struct MappedObject {
  uintptr_t base, begin, end;
  const void* dynamic;  ///< its PT_DYNAMIC
};

/// The function `name` that the object defines and exports; no address if there is none.
Image::Symbol find_function(const MappedObject&, const char* name);

}  // namespace onehop::interpose
