// Keeps the operations of one communicator one after another, whatever streams they use, as NCCL does.
#pragma once

#include <cstdint>

#include "plugin/device.hpp"

namespace onehop {

/// Around each operation: before(), the launch, after(); around a call that is passed to NCCL: before() and
/// after_passed(). Enqueues only; the host never waits here.
///
/// Three kinds of neighbours, each with the cheapest link that holds:
/// * eager after eager: the stream itself; where the stream changed, the event that after() records every
/// time. (Recording only when the stream
///   changes would need the old stream, which the user may have destroyed.)
/// * captured after captured, in one capture: the stream itself, or an edge where the stream changed.
/// * across launches (a graph beside another graph, or beside eager calls): an external event. The first
///   operation of a capture waits for it; a record behind the last one makes it. The record is added with the
///   first operation and moved behind each further one, so a replay has one wait and one record, whatever the
///   number of operations (plugin/cuda/capture_record.hpp). A record behind each would cost every replayed
///   operation 0.05 to 0.9 us, as measured.
class Order {
 public:
  Order() = default;
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  ~Order();

  /// `mixes`: graphs of this communicator may run beside eager calls or other graphs
  /// (NCCL_GRAPH_MIXING_SUPPORT).
  Status open(Device&, bool mixes);

  Status before(Stream, const StreamState&);
  Status after(Stream, const StreamState&);

  /// In the place of after(), behind a call that was passed to NCCL. NCCL orders those among themselves,
  /// across launches too; here they are ordered with onehop's own.
  Status after_passed(Stream, const StreamState&);

  /// Makes the next operation on `first` wait for what `other` holds so far.
  Status join(Stream first, Stream other);

  /// True when everything recorded so far is done.
  Result<bool> idle();

 private:
  Status note_eager(Stream, const StreamState&);
  Status note_captured(Stream, const StreamState&);

  Device* device_ = nullptr;
  Event done_ = nullptr;           ///< the latest operation, of any launch
  Event captured_done_ = nullptr;  ///< the latest operation of the current capture; only ever an edge
  Event joined_ = nullptr;         ///< only ever an edge between two streams of one group
  bool mixes_ = true;
  bool any_ = false;                 ///< done_ was recorded
  bool any_captured_ = false;        ///< a graph that records done_ may be launched at any time
  uint64_t stream_ = 0;              ///< of the latest eager operation
  uint64_t capture_ = 0;             ///< the current capture
  Stream capture_stream_ = nullptr;  ///< of its latest operation
  RecordPlace capture_record_;       ///< in it
};

}  // namespace onehop
