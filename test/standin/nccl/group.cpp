#include "test/standin/nccl/group.hpp"

#include <algorithm>
#include <thread>

#include "test/standin/nccl/elements.hpp"
#include "test/standin/nccl/log.hpp"

extern "C" void onehop_standin_spend_nccl(cudaStream_t stream, size_t bytes);

namespace onehop::standin {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Job> jobs;
  std::vector<Operation> operations;
};
thread_local Group group;

ncclResult_t run_all(const std::vector<Job>& jobs) {
  if (jobs.size() == 1) return jobs.front().run();
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = jobs[i].run(); });
  }
  for (std::thread& thread : threads) thread.join();
  const auto failed =
      std::find_if(results.begin(), results.end(), [](ncclResult_t result) { return result != ncclSuccess; });
  return failed != results.end() ? *failed : ncclSuccess;
}

ncclResult_t run_jobs(std::vector<Job> jobs) {
  if (jobs.empty()) return ncclSuccess;
  std::vector<CommunicatorRef> in_progress;
  bool any_blocks = false;
  for (const Job& job : jobs) {
    if (job.communicator == nullptr) continue;
    if (job.communicator->blocking) {
      any_blocks = true;
    } else {
      in_progress.push_back(job.communicator);
    }
  }
  if (in_progress.empty()) return run_all(jobs);
  if (any_blocks) {
    warn("Blocking and nonblocking communicators are not allowed in the same group.");
    return ncclInvalidArgument;
  }
  for (const CommunicatorRef& communicator : in_progress) communicator->state = ncclInProgress;
  std::thread([jobs = std::move(jobs), in_progress] {
    const ncclResult_t result = run_all(jobs);
    for (const CommunicatorRef& communicator : in_progress) communicator->state = result;
  }).detach();
  return ncclInProgress;
}

/// The sends and receives of one communicator are one piece of work, which is on every stream that they name.
ncclResult_t launch_point_to_point(const std::vector<Operation>& operations) {
  Communicator& communicator = *operations.front().communicator;
  const cudaStream_t stream = operations.front().stream;
  std::vector<cudaStream_t> others;
  for (const Operation& operation : operations) {
    const cudaStream_t other = operation.stream;
    if (other != stream && std::find(others.begin(), others.end(), other) == others.end()) {
      others.push_back(other);
    }
  }
  for (cudaStream_t other : others) {
    if (const ncclResult_t error = communicator.link(stream, other)) return error;
  }
  if (const ncclResult_t error =
          communicator.launch(stream, [operations] { run_point_to_point(operations); })) {
    return error;
  }
  for (cudaStream_t other : others) {
    if (const ncclResult_t error = communicator.link(other, stream)) return error;
  }
  return ncclSuccess;
}

/// All streams of one communicator in a group must be in the same capture, or in none.
ncclResult_t check_captures(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    const auto first = std::find_if(operations.begin(), operations.end(), [&](const Operation& other) {
      return other.communicator == operation.communicator;
    });
    cudaSetDevice(operation.communicator->device);
    if (Communicator::same_capture(first->stream, operation.stream)) continue;
    warn(
        "Streams given to a communicator within a NCCL group must either be all uncaptured or all captured "
        "by "
        "the same graph.");
    return ncclInvalidUsage;
  }
  return ncclSuccess;
}

/// Collectives in the order of the calls, then what goes between two ranks.
ncclResult_t launch_all(std::vector<Operation> operations) {
  if (const ncclResult_t error = check_captures(operations)) return error;
  std::vector<std::vector<Operation>> exchanges;  // by communicator
  for (Operation& operation : operations) {
    Communicator& communicator = *operation.communicator;
    if (is_point_to_point(operation.kind)) {
      auto same = std::find_if(exchanges.begin(), exchanges.end(), [&](const auto& exchange) {
        return exchange.front().communicator == operation.communicator;
      });
      if (same == exchanges.end()) same = exchanges.emplace(exchanges.end());
      same->push_back(std::move(operation));
      continue;
    }
    cudaSetDevice(communicator.device);
    const cudaStream_t stream = operation.stream;
    if (const ncclResult_t error = communicator.launch(stream, [operation = std::move(operation)] {
          run_collective(operation);
          onehop_standin_spend_nccl(operation.stream, operation.count * element_size(operation.type));
        })) {
      return error;
    }
  }
  for (const std::vector<Operation>& exchange : exchanges) {
    cudaSetDevice(exchange.front().communicator->device);
    if (const ncclResult_t error = launch_point_to_point(exchange)) return error;
  }
  return ncclSuccess;
}

ncclResult_t simulate(const std::vector<Operation>& operations, ncclSimInfo_t& simulation) {
  const ncclSimInfo_t expected = NCCL_SIM_INFO_INITIALIZER;
  if (simulation.magic != expected.magic) return ncclInvalidArgument;
  simulation.estimatedTime = static_cast<float>(operations.size());
  return ncclSuccess;
}

}  // namespace

void start_group() {
  ++group.depth;
}

ncclResult_t note_error(ncclResult_t error) {
  const bool is_error = error != ncclSuccess && error != ncclInProgress;
  if (group.depth > 0 && is_error && group.error == ncclSuccess) group.error = error;
  return error;
}

void add_job(Job job) {
  group.jobs.push_back(std::move(job));
}
void add_operation(Operation operation) {
  group.operations.push_back(std::move(operation));
}

ncclResult_t end_group(ncclSimInfo_t* simulation) {
  if (group.depth == 0) {
    warn("ncclGroupEnd: not in a group call.");
    return ncclInvalidUsage;
  }
  if (--group.depth > 0) return ncclSuccess;
  const Group done = std::exchange(group, Group{});
  if (done.error != ncclSuccess) return done.error;
  if (simulation != nullptr) return simulate(done.operations, *simulation);
  const ncclResult_t result = run_jobs(done.jobs);
  if (result != ncclSuccess && result != ncclInProgress) return result;
  int device = 0;
  cudaGetDevice(&device);
  const ncclResult_t launched = launch_all(done.operations);
  cudaSetDevice(device);
  return launched != ncclSuccess ? launched : result;
}

}  // namespace onehop::standin
