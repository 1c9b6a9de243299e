// The launched instantiations are many: they are compiled once for each kind of memory (launched_*.cpp).
#pragma once

#include "test/protocol/dispatch.hpp"
#include "test/protocol/fabric.hpp"
#include "test/protocol/host_group.hpp"
#include "test/protocol/reordering_memory.hpp"

namespace onehop::test {

extern template void Launched::run(PlainFabric::Memory&, const HostGroup&, const CommView&, const Operation&,
                                   bool);
extern template void Launched::run(ReorderingFabric::Memory&, const HostGroup&, const CommView&,
                                   const Operation&, bool);

}  // namespace onehop::test
