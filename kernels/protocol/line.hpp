// One line: a pack of payload as it lies in staging memory.
#pragma once

#include <cstdint>

#include "kernels/operation.hpp"
#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/memory.hpp"
#include "kernels/protocol/wait.hpp"
#include "kernels/protocol/words.hpp"

namespace onehop {

template <class Words, class Mem>
ONEHOP_HD void send_line(Mem& memory, Pack* to, const Pack& sendable, uint32_t epoch) {
  const typename Words::Line line = Words::encode(sendable, epoch);
  ONEHOP_UNROLL
  for (uint32_t k = 0; k < Words::kPacks; ++k) memory.send(to + k, line.pack[k]);
}

template <class Words, class Mem>
ONEHOP_HD typename Words::Line receive_line(Mem& memory, const Pack* from) {
  typename Words::Line line;
  ONEHOP_UNROLL
  for (uint32_t k = 0; k < Words::kPacks; ++k) line.pack[k] = memory.receive(from + k);
  return line;
}

/// As receive_line(), by peek() if `peek`.
template <class Words, class Mem>
ONEHOP_HD typename Words::Line peek_line(Mem& memory, const Pack* from, bool peek) {
  typename Words::Line line;
  ONEHOP_UNROLL
  for (uint32_t k = 0; k < Words::kPacks; ++k)
    line.pack[k] = peek ? memory.peek(from + k) : memory.receive(from + k);
  return line;
}

/// Waits for one line of rank `source`. False: the communicator has failed.
template <class Words, class Mem>
ONEHOP_HD bool wait_for_line(Mem& memory, const HopView& comm, Patience& patience, uint32_t source,
                             const Pack* from, uint32_t epoch, Pack& payload) {
  while (true) {
    const typename Words::Line line = receive_line<Words>(memory, from);
    if (arrived<Words>(line, epoch)) {
      payload = Words::decode(line);
      return true;
    }
    if (patience.is_tried(memory) && patience.is_over(memory, comm, source)) return false;
  }
}

}  // namespace onehop
