// NCCL's ways in: its configuration files, and the plugins that it opens.
#pragma once

namespace onehop::standin {

/// The first thing that a program's first call to NCCL does: the environment plugin, then the configuration
/// files.
void load_environment();
/// When a communicator is allocated.
void load_net_plugins();
/// When the ranks of a communicator have met.
void load_tuner_and_profiler();

/// 22809, or what ONEHOP_STANDIN_NCCL_VERSION says.
int nccl_version();

}  // namespace onehop::standin
