// The plan file's part in set-up: whether every rank has the same one, and the plan that is taken from it.
//
// Every rank has read the same bytes and knows the same machine, so all come to the same plan, or to none,
// without another exchange.
#pragma once

#include <span>

#include "plugin/setup/hello.hpp"
#include "plugin/setup/member.hpp"

namespace onehop {

/// Whether every rank has the same plan file. If not, and if there is one to speak of, a line says why it is
/// not used.
bool shares_plan_file(const Member&, std::span<const Hello>);

/// Sets the plan from the file where that is for this communicator; else a line says why it is not used.
void plan_from_file(Member&);

}  // namespace onehop
