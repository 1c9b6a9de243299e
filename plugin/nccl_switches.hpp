// NCCL's own switches, where they concern onehop. NCCL copies the values of its configuration files into the
// environment when it makes its first communicator, so by the time a communicator is set up the environment
// holds those too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace onehop {

/// Whether a value of NCCL_ALGO or NCCL_PROTO pins what NCCL may use for AllReduce. "ring", "allreduce:tree"
/// and "bcast:ring;tree" do; "^nvls" only excludes, and "bcast:ring" is about another function.
bool pins_all_reduce(std::string_view value);

/// Why the user's settings of NCCL leave no room for onehop, if so. Reads the environment.
std::optional<std::string> nccl_switch_veto();

/// Which setting of NCCL keeps it from peer access, between some pairs of GPUs at least; onehop then stays
/// away from it too. Reads the environment.
std::optional<std::string> nccl_avoids_peers();

/// NCCL_GRAPH_MIXING_SUPPORT: whether graphs may run beside other work of their communicator.
bool nccl_mixes_graphs();

}  // namespace onehop
