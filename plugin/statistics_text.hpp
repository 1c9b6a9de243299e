// The statistics as people and scripts read them: the same text at the end of a job and from outside while it
// runs.
#pragma once

#include <string>

#include "plugin/statistics_page.hpp"

namespace onehop {

const char* name_of(RecordState);

/// "one-shot push 140 (8.8 KiB), two-shot push 20 (1.2 MiB)"; empty if nothing was taken.
std::string methods_text(const Statistics&);
/// "type 3, size 20"; empty if nothing was passed.
std::string reasons_text(const Statistics&);
/// One line: "communicator 0x7f..., rank 0 of 4: ON, the ranks met in 12.1 ms, set up in 49.3 ms; ..."
std::string communicator_text(const StatisticsSnapshot::Listed&);

/// One JSON document, with a line feed at the end. docs/command.md describes it.
std::string statistics_json(const StatisticsSnapshot&);

}  // namespace onehop
