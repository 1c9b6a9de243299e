// The statistics as people and scripts read them.
#pragma once

#include <string>

#include "plugin/communicator.hpp"

namespace onehop {

/// Why a communicator is off or failed, else empty.
std::string reason_of(const Communicator&);

/// Adds up every communicator, living or gone, and the calls that belong to none.
void add_all(Statistics& sums);

/// At exit, as the settings say: a few log lines, a JSON file.
void report_at_exit();

}  // namespace onehop
