// The statistics of another process, from its page (plugin/statistics_page.hpp). Nothing is asked of that
// process, and nothing in its page is believed.
#pragma once

#include <vector>

#include "plugin/statistics_page.hpp"

namespace onehop::tool {

/// `proc`: where /proc is, for tests.
Result<StatisticsSnapshot> live_statistics(int pid, const std::string& proc = "/proc");

/// Processes of which live_statistics() may say something, in ascending order.
std::vector<int> processes_with_statistics(const std::string& proc = "/proc");

}  // namespace onehop::tool
