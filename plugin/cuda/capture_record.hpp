// The external event record of a capture: where it stands in the graph, and how it moves.
#pragma once

#include <cuda_runtime_api.h>

#include "plugin/device.hpp"

namespace onehop::capture_record {

cudaError_t info(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long* id, cudaGraph_t* = nullptr,
                 const cudaGraphNode_t** frontier = nullptr, size_t* count = nullptr);

/// A record of `event` behind the node that `stream`, which is being captured, has just got; or the one of
/// `place` moved there, which must stand before it.
///
/// The record stands *in line*: what the stream captures next comes behind it, and a graph that was one line
/// stays one. On a branch of its own it would cost each replay a hardware queue more, and ranks that share a
/// GPU share queues: one rank's record, which waits for that rank's operation, stands in front of what the
/// other rank must run for that operation to end (docs/architecture.md, Order).
///
/// A record that moves leaves its place in the line: what was captured behind it comes behind the operation
/// that it stood behind. All of that is known but one thing: a stream or an event of the user that stands at
/// the record, and from which nothing was captured yet. What is captured from there later would wait for the
/// new place, hence for the later operation. Nothing is lost by it but the overlap, and no circle can come of
/// it, since the record's new place was captured before. Where it can be seen (the new operation depends on
/// the record *and* on something beside it, as when a communication stream waits for the compute stream that
/// waited for the operation before), the record stays where it is, and the ones from here on stand *aside*,
/// on a branch that nothing depends on. Both record the same event, the second one after the first, since the
/// operation lies between.
cudaError_t put(cudaEvent_t event, cudaStream_t stream, RecordPlace& place);

}  // namespace onehop::capture_record
