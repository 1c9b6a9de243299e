// Runs trials on all ranks of a node and reports what was wrong. The host only enqueues: it waits once, at
// the end.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "test/gpu/local_ranks.hpp"
#include "test/gpu/names.hpp"
#include "test/gpu/trials.hpp"

namespace onehop::test {

/// Device memory of a rank's device.
template <class T>
class DeviceArray {
 public:
  DeviceArray(int device, size_t count) : device_(device), count_(count) {
    const CurrentDevice scope(*cuda_device(), device_);
    cuda_ok(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<size_t>(count, 1) * sizeof(T)));
    cuda_ok(cudaMemset(data_, 0, count * sizeof(T)));
    cuda_ok(cudaDeviceSynchronize());
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    const CurrentDevice scope(*cuda_device(), device_);
    (void)cudaFree(data_);
  }

  T* data() const { return data_; }
  /// Wait for everything on this device.
  void assign(const std::vector<T>& values) {
    const CurrentDevice scope(*cuda_device(), device_);
    cuda_ok(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    cuda_ok(cudaDeviceSynchronize());
  }
  std::vector<T> fetch() const {
    const CurrentDevice scope(*cuda_device(), device_);
    std::vector<T> values(count_);
    cuda_ok(cudaDeviceSynchronize());
    cuda_ok(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  int device_;
  size_t count_;
  T* data_ = nullptr;
};

/// A list of trials for each type and operator, run in this order.
class TrialPlan {
 public:
  struct Batch {
    Element element;
    Reduction reduction;
    uint32_t first, count;
  };

  void begin(Element element, Reduction reduction) {
    batches_.push_back({element, reduction, static_cast<uint32_t>(trials_.size()), 0});
    end_ = 0;
  }

  /// A trial of the batch that was begun last. `off`: elements that input and result lie off a pack's
  /// alignment. `common`: every method of as many ranks has this trial, under the same `seed`.
  void add(size_t count, std::pair<uint32_t, uint32_t> off, uint32_t in_place, uint32_t seed, bool exact,
           Method method, bool common = false) {
    constexpr uint32_t kGuardBytes = 64;
    const auto size = static_cast<uint32_t>(element_size(batches_.back().element));
    // Poison in front, too; whole packs of it, so that `off` is the alignment.
    const uint32_t front = kGuardBytes / size;
    Trial trial;
    trial.at = end_;
    trial.count = static_cast<uint32_t>(count);
    trial.send_first = front + off.first;
    trial.receive_first = front + off.second;
    const uint32_t lanes = 16 / size;
    trial.elements = (trial.count + 1 + 2 * front + lanes - 1) / lanes * lanes;
    trial.in_place = in_place;
    trial.seed = seed;
    trial.exact = exact;
    end_ += trial.elements * size;
    bytes_ = std::max<size_t>(bytes_, end_);
    trials_.push_back(trial);
    methods_.push_back(method);
    common_.push_back(common);
    ++batches_.back().count;
  }

  /// The next batch uses the same memory, so a batch should not grow without bounds.
  size_t bytes() const { return bytes_; }
  const std::vector<Batch>& batches() const { return batches_; }
  const std::vector<Trial>& trials() const { return trials_; }
  Method method(uint32_t trial) const { return methods_[trial]; }
  bool is_common(uint32_t trial) const { return common_[trial]; }

 private:
  std::vector<Batch> batches_;
  std::vector<Trial> trials_;
  std::vector<Method> methods_;
  std::vector<bool> common_;
  uint32_t end_ = 0;
  size_t bytes_ = 0;
};

class TrialRunner {
 public:
  TrialRunner(LocalRanks& node, const TrialPlan& plan) : node_(node), plan_(plan) {
    for (Rank& rank : node_) {
      memory_.push_back(std::make_unique<Memory>(rank.device, plan));
      memory_.back()->trials.assign(plan.trials());
    }
  }
  ~TrialRunner() {
    for (Rank& rank : node_) (void)cudaStreamSynchronize(rank.stream);
  }
  TrialRunner(const TrialRunner&) = delete;
  TrialRunner& operator=(const TrialRunner&) = delete;

  /// Everything of the plan, and what came of it. `geometry`: other than the product's.
  void run(const ChooseGeometry& geometry = nullptr) {
    for (const TrialPlan::Batch& batch : plan_.batches()) {
      if (node_.any_stopped() || testing::Test::HasFatalFailure()) break;
      for (size_t r = 0; r < node_.size(); ++r)
        on_device(r, [&] { cuda_ok(prepare(batch_of(r, batch), stream(r))); });
      for (uint32_t t = batch.first; t < batch.first + batch.count; ++t)
        for (size_t r = 0; r < node_.size(); ++r) enqueue(r, batch, t, geometry);
      for (size_t r = 0; r < node_.size(); ++r)
        on_device(r, [&] { cuda_ok(check(batch_of(r, batch), stream(r))); });
    }
    node_.synchronize();
    if (!testing::Test::HasFatalFailure()) verify();
  }

  /// What rank r sends and receives, after a plan of one batch.
  std::vector<unsigned char> sent(size_t r) const { return memory_[r]->send.fetch(); }
  std::vector<unsigned char> received(size_t r) const { return memory_[r]->receive.fetch(); }

 private:
  struct Memory {
    Memory(int device, const TrialPlan& plan)
        : send(device, plan.bytes()),
          receive(device, plan.bytes()),
          trials(device, plan.trials().size()),
          digests(device, plan.trials().size()),
          fault(device, 1) {}

    DeviceArray<unsigned char> send, receive;
    DeviceArray<Trial> trials;
    DeviceArray<uint64_t> digests;
    DeviceArray<Fault> fault;
  };

  template <class Step>
  void on_device(size_t r, Step&& step) {
    const CurrentDevice scope(*cuda_device(), node_[r].device);
    step();
  }
  cudaStream_t stream(size_t r) { return node_[r].stream; }

  TrialBatch batch_of(size_t r, const TrialPlan::Batch& batch) {
    const Memory& memory = *memory_[r];
    return {batch.element,
            batch.reduction,
            static_cast<uint32_t>(r),
            static_cast<uint32_t>(node_.size()),
            batch.first,
            batch.count,
            memory.trials.data(),
            memory.send.data(),
            memory.receive.data(),
            memory.digests.data(),
            memory.fault.data()};
  }

  void enqueue(size_t r, const TrialPlan::Batch& batch, uint32_t t, const ChooseGeometry& geometry) {
    const Trial& trial = plan_.trials()[t];
    const size_t size = element_size(batch.element);
    Operation call;
    call.receive = memory_[r]->receive.data() + trial.at + trial.receive_first * size;
    call.send = (trial.in_place >> r & 1) != 0 ? call.receive
                                               : memory_[r]->send.data() + trial.at + trial.send_first * size;
    call.count = trial.count;
    call.element = batch.element;
    call.reduction = batch.reduction;
    call.method = plan_.method(t);
    node_[r].launch(call, node_[r].stream, geometry);
  }

  void verify() {
    std::vector<std::vector<uint64_t>> digests;
    for (size_t r = 0; r < node_.size(); ++r) {
      const Fault fault = memory_[r]->fault.fetch()[0];
      EXPECT_EQ(fault.wrong, 0u) << "rank " << r << ", " << describe(fault.trial) << ": " << describe(fault);
      digests.push_back(memory_[r]->digests.fetch());
    }
    if (testing::Test::HasFailure()) return;
    for (const TrialPlan::Batch& batch : plan_.batches()) {
      for (uint32_t t = batch.first; t < batch.first + batch.count; ++t) {
        for (size_t r = 1; r < node_.size(); ++r)
          ASSERT_EQ(digests[r][t], digests[0][t])
              << describe(t) << ": the results of ranks 0 and " << r << " differ in the bits of a NaN";
        if (!plan_.is_common(t)) continue;
        const Trial& trial = plan_.trials()[t];
        const auto [known, is_new] = all_digests().try_emplace(
            {node_.size(), batch.element, batch.reduction, trial.seed, trial.count, trial.exact},
            digests[0][t], plan_.method(t));
        ASSERT_EQ(known->second.first, digests[0][t])
            << describe(t) << ": the result of " << onehop::name_of(known->second.second)
            << " differs in the bits of a NaN";
      }
    }
  }

  /// Of this process: methods must agree bit for bit.
  using Key = std::tuple<size_t, Element, Reduction, uint32_t, uint32_t, bool>;
  static std::map<Key, std::pair<uint64_t, Method>>& all_digests() {
    static std::map<Key, std::pair<uint64_t, Method>> digests;
    return digests;
  }

  std::string describe(uint32_t t) const {
    const Trial& trial = plan_.trials()[t];
    std::ostringstream text;
    for (const TrialPlan::Batch& batch : plan_.batches())
      if (t - batch.first < batch.count) text << name_of(batch.element) << " " << name_of(batch.reduction);
    text << ", " << onehop::name_of(plan_.method(t)) << ", " << node_.size() << " ranks, count "
         << trial.count << " (input at element " << trial.send_first << ", result at " << trial.receive_first
         << ", in place 0x" << std::hex << trial.in_place << (trial.exact ? ", exact)" : ", any bits)");
    return text.str();
  }
  static std::string describe(const Fault& fault) {
    constexpr const char* kWhere[] = {"result ", "outside the result, at ", "in the send buffer, at "};
    std::ostringstream text;
    text << kWhere[fault.where] << static_cast<int32_t>(fault.index) << " is 0x" << std::hex << fault.got
         << ", expected 0x" << fault.want << std::dec << "; " << fault.wrong << " wrong in all";
    return text.str();
  }

  LocalRanks& node_;
  const TrialPlan& plan_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

}  // namespace onehop::test
