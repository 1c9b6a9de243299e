#include "test/protocol/launched.hpp"

namespace onehop::test {

template void Launched::run(ReorderingFabric::Memory&, const HostGroup&, const CommView&, const Operation&,
                            bool);

}  // namespace onehop::test
