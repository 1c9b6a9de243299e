// Making communicators: from an id, for all devices of a process, and from another communicator.

#include <algorithm>
#include <cstdlib>
#include <map>

#include "test/standin/cudart/places.hpp"
#include "test/standin/nccl/api.hpp"
#include "test/standin/nccl/group.hpp"
#include "test/standin/nccl/loader.hpp"
#include "test/standin/nccl/log.hpp"

using namespace onehop::standin;

namespace {

/// Memory behind the ids that this process gave out: kept until the ranks have met, so that they can find it.
class Ids {
 public:
  ncclResult_t make(ncclUniqueId& id) {
    std::optional<SharedMemory> memory = SharedMemory::create_for_nccl(sizeof(Segment));
    if (!memory) return ncclSystemError;
    const SharedHandle handle = memory->handle();
    id = {};
    std::memcpy(&id, &handle, sizeof handle);
    std::lock_guard guard(mutex_);
    memory_.emplace(handle.inode, std::move(*memory));
    return ncclSuccess;
  }
  void forget(const SharedHandle& handle) {
    std::lock_guard guard(mutex_);
    memory_.erase(handle.inode);
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, SharedMemory> memory_;
};

Ids& ids() {
  static auto* all = new Ids;  // never destroyed: background threads outlive main()
  return *all;
}

bool blocks_by_default() {
  const char* setting = std::getenv("NCCL_COMM_BLOCKING");
  return setting == nullptr || std::atoi(setting) != 0;
}

/// `blocking` is the default on entry and the config's choice on return.
ncclResult_t read_config(const ncclConfig_t* config, bool& blocking) {
  const ncclConfig_t expected = NCCL_CONFIG_INITIALIZER;
  if (config == nullptr) return ncclSuccess;
  if (config->magic != expected.magic) {
    warn("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    return ncclInvalidArgument;
  }
  if (config->blocking == NCCL_CONFIG_UNDEF_INT) return ncclSuccess;
  if (config->blocking != 0 && config->blocking != 1) {
    warn("Invalid config blocking attribute value %d", config->blocking);
    return ncclInvalidArgument;
  }
  blocking = config->blocking == 1;
  return ncclSuccess;
}

ncclResult_t add_rank(ncclComm_t* result, int ranks, const ncclUniqueId& id, int rank, bool blocking) {
  if (ranks < 1 || ranks > kMaxCommRanks || rank < 0 || rank >= ranks) {
    warn("Invalid rank requested : %d/%d (the stand-in allows %d ranks)", rank, ranks, kMaxCommRanks);
    return ncclInvalidArgument;
  }
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
  SharedHandle handle;
  std::memcpy(&handle, &id, sizeof handle);
  const auto communicator = std::make_shared<Communicator>(rank, ranks, device, blocking);
  *result = make_handle(communicator);
  add_job({communicator, [communicator, handle] {
             load_net_plugins();
             come_to("init");
             const ncclResult_t met = communicator->connect(handle);
             if (met == ncclSuccess) {
               ids().forget(handle);
             } else {
               communicator->state = met;
             }
             info("comm rank %d nranks %d cudaDev %d - Init %s", communicator->rank, communicator->ranks,
                  communicator->device, met == ncclSuccess ? "COMPLETE" : "FAILED");
             return met;
           }});
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* result, int ranks, const ncclUniqueId& id, int rank,
                       const ncclConfig_t* config) {
  if (result == nullptr) return ncclInvalidArgument;
  start_group();
  bool blocking = blocks_by_default();
  ncclResult_t error = read_config(config, blocking);
  if (error == ncclSuccess) error = add_rank(result, ranks, id, rank, blocking);
  note_error(error);
  const ncclResult_t ended = end_group();
  return error != ncclSuccess ? error : ended;
}

/// What a rank says when a communicator is split.
struct Wish {
  int color, key;
  SharedHandle memory;  ///< for the case that this rank comes first in the new communicator
};

/// Makes a communicator of those members that wish for the same color, in the order of their keys.
ncclResult_t split(Communicator& parent, const std::vector<int>& members, int color, int key, bool blocking,
                   ncclComm_t* result) {
  std::optional<SharedMemory> memory = SharedMemory::create_for_nccl(sizeof(Segment));
  if (!memory) return ncclSystemError;
  come_to("split");
  std::vector<Wish> wishes;
  if (!parent.exchange(Wish{color, key, memory->handle()}, members, wishes)) return ncclInternalError;
  std::vector<int> chosen;
  for (int member : members) {
    if (wishes[member].color == color) chosen.push_back(member);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) { return wishes[a].key < wishes[b].key; });
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  const int rank = static_cast<int>(std::find(chosen.begin(), chosen.end(), parent.rank) - chosen.begin());
  const auto child =
      std::make_shared<Communicator>(rank, static_cast<int>(chosen.size()), parent.device, blocking);
  const ncclResult_t met = child->connect(wishes[chosen.front()].memory);
  if (met == ncclSuccess) *result = make_handle(child);
  return met;
}

ncclResult_t add_split(ncclComm_t comm, const std::vector<int>& members, int color, int key,
                       ncclComm_t* result, const ncclConfig_t* config) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (result == nullptr) return ncclInvalidArgument;
  *result = nullptr;
  const CommunicatorRef parent = comm->communicator;
  start_group();
  bool blocking = parent->blocking;
  ncclResult_t error = check_ready(*parent);
  if (error == ncclSuccess) error = read_config(config, blocking);
  if (error == ncclSuccess) {
    add_job({parent, [=] {
               if (parent->stop) parent->drain();
               return split(*parent, members, color, key, blocking, result);
             }});
  }
  note_error(error);
  const ncclResult_t ended = end_group();
  return error != ncclSuccess ? error : ended;
}

}  // namespace

STANDIN_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId* id) {
  load_environment();
  if (id == nullptr) return ncclInvalidArgument;
  return ids().make(*id);
}

STANDIN_API(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  load_environment();
  return init_rank(comm, ranks, id, rank, nullptr);
}

STANDIN_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
            ncclConfig_t* config) {
  load_environment();
  return init_rank(comm, ranks, id, rank, config);
}

STANDIN_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t* comm, int ranks, int rank, int id_count,
            ncclUniqueId* id_list, ncclConfig_t* config) {
  load_environment();
  if (id_count < 1 || id_list == nullptr) return ncclInvalidArgument;
  return init_rank(comm, ranks, id_list[0], rank, config);
}

STANDIN_API(ncclResult_t, ncclCommInitAll, ncclComm_t* comms, int count, const int* devices) {
  load_environment();
  if (comms == nullptr || count < 1) return ncclInvalidArgument;
  int before = 0;
  ncclUniqueId id;
  if (cudaGetDevice(&before) != cudaSuccess) return ncclUnhandledCudaError;
  if (const ncclResult_t error = ids().make(id)) return error;
  start_group();
  ncclResult_t error = ncclSuccess;
  for (int rank = 0; rank < count && error == ncclSuccess; ++rank) {
    const bool set = cudaSetDevice(devices != nullptr ? devices[rank] : rank) == cudaSuccess;
    error = set ? add_rank(&comms[rank], count, id, rank, true) : ncclUnhandledCudaError;
  }
  cudaSetDevice(before);
  note_error(error);
  const ncclResult_t ended = end_group();
  return error != ncclSuccess ? error : ended;
}

STANDIN_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* result,
            ncclConfig_t* config) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (color < NCCL_SPLIT_NOCOLOR) return note_error(ncclInvalidArgument);
  return add_split(comm, everyone(comm->communicator->ranks), color, key, result, config);
}

STANDIN_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int* excluded, int excluded_count,
            ncclComm_t* result, ncclConfig_t* config, int flags) {
  if (const ncclResult_t error = check_handle(comm)) return error;
  if (excluded_count < 0 || (excluded_count > 0 && excluded == nullptr))
    return note_error(ncclInvalidArgument);
  Communicator& parent = *comm->communicator;
  std::vector<int> members = everyone(parent.ranks);
  for (int i = 0; i < excluded_count; ++i) {
    members.erase(std::remove(members.begin(), members.end(), excluded[i]), members.end());
  }
  if (std::find(members.begin(), members.end(), parent.rank) == members.end()) {
    return note_error(ncclInvalidArgument);
  }
  if ((flags & NCCL_SHRINK_ABORT) != 0) parent.stop = true;
  return add_split(comm, members, 0, 0, result, config);
}
