// This rank's own record.
#pragma once

#include "plugin/nccl_abi.hpp"
#include "plugin/setup/hello.hpp"
#include "plugin/setup/member.hpp"

namespace onehop {

/// With a veto if this rank must do without onehop.
Hello own_hello(const nccl::Functions&, Member&);

}  // namespace onehop
