// Communicators over links that are broken.
#include <sstream>

#include "test/node/rank/device.hpp"

namespace onehop::node {
namespace {

/// Sums of a few sizes, of words that differ by rank and place.
void use(Rank& self, ncclComm_t comm, const Stream& stream, const std::string& counted) {
  for (const size_t count : {1u, 100u, 4000u, 100'000u}) {
    std::vector<uint32_t> mine(count), expected(count);
    for (size_t i = 0; i < count; ++i)
      for (uint32_t r = 0; r < static_cast<uint32_t>(self.ranks); ++r) {
        const uint32_t word = static_cast<uint32_t>(i) * 0x9E3779B9u + r * 0x85EBCA6Bu;
        expected[i] += word;
        if (r == static_cast<uint32_t>(self.rank)) mine[i] = word;
      }
    const Words from(count), to(count);
    from.write(mine);
    for (int repeat = 0; repeat < 4; ++repeat) {
      to.fill(0xA5A5A5A5);
      MUST(sum(from, to, comm, stream));
      stream.synchronize();
      must(to.read() == expected, "wrong sum of " + std::to_string(count) + " words");
      self.expect(counted);
    }
  }
}

}  // namespace

/// One communicator, and another after it. Argument: what calls are counted as, and milliseconds between the
/// two, in which words that are late arrive.
SCENARIO(two_over_broken_links) {
  std::string counted;
  int rest_ms = 0;
  std::istringstream(self.argument) >> counted >> rest_ms;
  const ncclComm_t first = self.join("first");
  const Stream stream;
  use(self, first, stream, counted);
  std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
  const ncclComm_t second = self.join("second");
  use(self, second, stream, counted);
  use(self, first, stream, counted);
  MUST(ncclCommDestroy(second));
  MUST(ncclCommDestroy(first));
}

}  // namespace onehop::node
