// A call as operations: more than one where it is larger than what one operation can carry.
#pragma once

#include <algorithm>

#include "plugin/device.hpp"

namespace onehop {

/// Enqueues `operation` in operations of up to `piece` elements, one after another. On the call path.
inline Status launch_in_pieces(Device& device, const CommView& view, const Operation& operation, size_t piece,
                               Stream stream) {
  const size_t bytes = element_size(operation.element);
  Operation next = operation;
  Status status;
  for (size_t done = 0; status && done < operation.count; done += next.count) {
    next.send = static_cast<const unsigned char*>(operation.send) + done * bytes;
    next.receive = static_cast<unsigned char*>(operation.receive) + done * bytes;
    next.count = std::min(piece, operation.count - done);
    status = device.launch(view, next, stream);
  }
  return status;
}

}  // namespace onehop
