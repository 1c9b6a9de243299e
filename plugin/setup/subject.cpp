#include "plugin/setup/subject.hpp"

#include <algorithm>
#include <atomic>

#include "plugin/pieces.hpp"
#include "plugin/setup/progress.hpp"

namespace onehop {
namespace {

constexpr uint64_t kWaitNs = 4'000'000'000;  ///< longest wait of a kernel while measuring

}  // namespace

Subject::Subject(Device& device, Member& member)
    : device_(device), member_(member), view_(member.staging->view()) {
  view_.budget_ns = kWaitNs;
}

Subject::~Subject() {
  drop_graphs();
  const CurrentDevice scope(device_, member_.device_index);
  for (Event timer : timers_) device_.destroy_event(timer);
  if (buffer_ != nullptr) device_.release(buffer_);
}

Status Subject::open() {
  const CurrentDevice scope(device_, member_.device_index);
  const size_t bytes = std::max<uint64_t>(member_.plan.max_bytes(), 64 << 10);
  Result<void*> buffer = device_.allocate(2 * bytes);
  if (!buffer) return buffer.error();
  buffer_ = static_cast<unsigned char*>(*buffer);
  receive_ = buffer_ + bytes;
  return device_.fill(buffer_, 0, bytes, member_.stream);
}

Status Subject::end() {
  Result<Graph> graph = device_.end_capture(member_.stream);
  if (!graph) return graph.error();
  graphs_.push_back(*graph);
  return {};
}

Status Subject::time() {
  if (next_timer_ == timers_.size()) {
    Result<Event> timer = device_.create_timer();
    if (!timer) return timer.error();
    timers_.push_back(*timer);
  }
  return device_.record_timer(timers_[next_timer_++], member_.stream);
}

Status Subject::run(const CommView& view, Method method, uint64_t bytes, size_t piece) {
  const Operation operation{buffer_, receive_, bytes / 2, Element::kBfloat16, Reduction::kSum, method};
  return launch_in_pieces(device_, view, operation, piece, member_.stream);
}

Status Subject::run_nccl(const nccl::Functions& functions, uint64_t bytes) {
  const nccl::Result result = functions.AllReduce(buffer_, receive_, bytes / 2, nccl::kBfloat16, nccl::kSum,
                                                  member_.handle, member_.stream);
  if (result == nccl::kSuccess || result == nccl::kInProgress) return {};
  return Error{"NCCL's AllReduce in a capture: error " + std::to_string(result)};
}

Status Subject::meet(const CommView& view) {
  return run(view, member_.plan.candidates[0], sizeof(Pack), sizeof(Pack));
}

Result<std::vector<double>> Subject::times_us(size_t first, size_t count) const {
  if (std::atomic_ref(view_.control->stop).load() != static_cast<uint32_t>(Stop::kNone))
    return Error{"a kernel waited too long for a peer"};
  std::vector<double> times;
  for (size_t i = first; i < first + 2 * count; i += 2) {
    const Result<double> us = device_.elapsed_us(timers_[i], timers_[i + 1]);
    if (!us) return us.error();
    times.push_back(*us);
  }
  return times;
}

void Subject::drop_graphs() {
  const CurrentDevice scope(device_, member_.device_index);
  for (Graph graph : graphs_) device_.destroy_graph(graph);
  graphs_.clear();
  next_timer_ = 0;
}

void try_each(Device& device, Subjects& subjects, const std::function<Status(Subject&)>& step) {
  for_pending(subjects, [&](Subject& s) {
    if (!s.status) return;
    const CurrentDevice scope(device, s.member().device_index);
    s.status = step(s);
  });
}

nccl::Result agree(const nccl::Functions& functions, Members& members, Subjects& subjects, const char* what) {
  const nccl::Result result = exchange(functions, members, [&](Member& m) {
    for (auto& s : subjects)
      if (&s->member() == &m) return Progress::of(s->status);
    return Progress::of(Error{"not measured"});
  });
  if (result != nccl::kSuccess) return result;
  for_pending(subjects, [&](Subject& s) {
    Member& m = s.member();
    m.not_measured = first_failure(m.all_records<Progress>(), what);
    m.pending = !m.not_measured;
  });
  return nccl::kSuccess;
}

}  // namespace onehop
