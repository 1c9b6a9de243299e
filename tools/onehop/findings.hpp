// From facts to what is wrong, why it matters and how to mend it. A pure function: no fact is looked up here,
// and what is not known leads to no finding but that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugin/result.hpp"
#include "tools/onehop/driver.hpp"
#include "tools/onehop/find_nccl.hpp"
#include "tools/onehop/nccl_library.hpp"
#include "tools/onehop/pci.hpp"
#include "tools/onehop/process_facts.hpp"
#include "tools/onehop/system_facts.hpp"

namespace onehop::tool {

struct LibraryFacts {
  FoundNccl found;
  Result<NcclLibrary> library = Error{};
};

struct Facts {
  PciTree pci;
  Result<DriverFacts> driver = Error{};
  SystemFacts system;
  std::vector<LibraryFacts> libraries;
  Environment environment;               ///< with NCCL's configuration files
  Result<std::string> plugin = Error{};  ///< where the object is
  std::string built_with_cuda;           ///< "13.0"; empty: without
  int oldest_arch = 0;                   ///< lowest compute capability that it has kernels for; 0: unknown
  std::optional<ProcessFacts> process;
};

enum class Severity {
  kOff,   ///< keeps onehop off, in part at least
  kRisk,  ///< makes it slow, or may make peer access fail
  kNote,
};
const char* name_of(Severity);

struct Finding {
  Severity severity;
  std::string id;  ///< for scripts
  std::string what, why, mend;
};

/// The worst first.
std::vector<Finding> find(const Facts&);

}  // namespace onehop::tool
