// Ctrl-C, or SIGTERM of a batch system: what was measured so far is reported, not lost.
#pragma once

namespace onehop::bench {

/// From now on the first SIGINT, SIGTERM or SIGHUP is only noted. The second ends the command.
void note_interrupts();
bool interrupted();

/// For the processes of the sides, which a terminal's signal reaches as well: they end with the command.
void ignore_interrupts();

}  // namespace onehop::bench
