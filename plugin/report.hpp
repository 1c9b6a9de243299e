// What onehop says of a communicator, and at the end of the process.
#pragma once

#include <string>

#include "plugin/communicator.hpp"

namespace onehop {

/// Why a communicator is off or failed, else empty.
std::string reason_of(const Communicator&);

/// At exit, as the settings say: a few log lines, a JSON file.
void report_at_exit();

}  // namespace onehop
