// The plugin in this process, if there is one: what its public interface says.
#pragma once

#include <dlfcn.h>

#include "onehop/onehop.h"
#include "test/node/rank/rank.hpp"

namespace onehop::node {

class Loaded {
 public:
  Loaded() : handle_(dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD)) {}

  bool found() const { return handle_ != nullptr; }
  onehopStatistics statistics() const {
    onehopStatistics statistics{};
    if (found()) MUST(function<int(onehopStatistics*)>("onehopGetStatistics")(&statistics) == 0);
    return statistics;
  }
  onehopCommStatus status(ncclComm_t comm) const {
    onehopCommStatus status{};
    if (found())
      MUST(function<int(ncclComm_t, onehopCommStatus*)>("onehopGetCommStatus")(comm, &status) == 0);
    return status;
  }
  int enable(ncclComm_t comm, bool on) const {
    return function<int(ncclComm_t, int)>("onehopEnable")(comm, on);
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(handle_, name));
  }
  void* handle_;
};

/// How many calls are taken and passed while it lives.
class Counted {
 public:
  uint64_t taken() const { return loaded_.statistics().taken - before_.taken; }
  uint64_t passed() const { return loaded_.statistics().passed - before_.passed; }

 private:
  Loaded loaded_;
  onehopStatistics before_ = loaded_.statistics();
};

}  // namespace onehop::node
