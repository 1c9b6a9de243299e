// Places in the life of a process at which a test may end it: every call of onehop's Device that does
// something, every operation of the stand-in libnccl, and both ends of each piece of work on a stream.
//
// ONEHOP_STANDIN_KILL=N kills the process with SIGKILL at the N-th of them, NAME:N at the N-th of that name.
#pragma once

#include <cstdint>

extern "C" {
/// Of both libraries, counted together.
void onehop_standin_come_to(const char* place);
/// How many there were so far.
uint64_t onehop_standin_places();
}

namespace onehop::standin {

inline void come_to(const char* place) {
  onehop_standin_come_to(place);
}

}  // namespace onehop::standin
