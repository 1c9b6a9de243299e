// Measuring every two ranks at set-up: where the islands come from.
#pragma once

#include "plugin/measure/pairs.hpp"
#include "plugin/setup/subject.hpp"

namespace onehop {

/// Times the exchanges of every two ranks of every pending member, alone and all together, of words that are
/// written and of words that are read; gives each member's plan its islands, or takes the method out of it
/// where there are none. The staging memory, which must be Staging::lendable(), is lent for it and empty
/// afterwards.
nccl::Result measure_pairs(const nccl::Functions&, Device&, Members&, Subjects&);

}  // namespace onehop
