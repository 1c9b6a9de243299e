// A process of a side: does what the command tells it, over a channel.
#pragma once

namespace onehop::bench {

/// Until the command says goodbye, or is gone. Returns the exit code.
int serve(int channel_fd);

}  // namespace onehop::bench
