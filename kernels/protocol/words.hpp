// Words that prove by themselves that they arrived. Because each does, no two stores to an inbox need to
// arrive in order: no fence, no flag behind the data, no barrier. See README.md, "Words".
#pragma once

#include <cstdint>

#include "kernels/protocol/annotate.hpp"
#include "kernels/protocol/layout.hpp"

namespace onehop {

/// Sentinel words, for floating-point types of up to 4 bytes: an empty word holds all ones, and a sender
/// never sends all ones.
///
/// A word is 4 bytes: one fp32, two fp16 or bf16, or four fp8. All ones is a NaN (or several) in each of
/// these types. So is the word that is sent in its place, which depends on the type: a NaN stays a NaN, and
/// every other value arrives bit for bit.
template <uint32_t kOtherNanOfType>
struct SentinelWordsOf {
  static constexpr WordKind kKind = WordKind::kSentinel;
  static constexpr uint32_t kPacks = Layout::expansion(kKind);
  static constexpr uint32_t kEmpty = 0xFFFFFFFFu;
  static constexpr uint32_t kOtherNan = kOtherNanOfType;

  struct Line {
    Pack pack[kPacks];
  };

  /// What the receivers will see of this payload. The sender must also use this form in its own sum, else
  /// ranks could differ in the bits of a NaN.
  ONEHOP_HD static Pack sendable(Pack payload) {
    for (uint32_t& word : payload.word) word = word == kEmpty ? kOtherNan : word;
    return payload;
  }

  ONEHOP_HD static Line encode(const Pack& sendable_payload, uint32_t /*epoch*/) {
    return {{sendable_payload}};
  }

  /// Looks at a line; several lines are looked at by handing on the result, beginning with 0. complete()
  /// tells whether all of them had arrived.
  ONEHOP_HD static uint32_t look(uint32_t seen, const Line& line, uint32_t /*epoch*/) {
    const Pack& p = line.pack[0];
    return largest(seen, largest(largest(p.word[0], p.word[1]), largest(p.word[2], p.word[3])));
  }
  ONEHOP_HD static bool complete(uint32_t seen) { return seen != kEmpty; }

  ONEHOP_HD static Pack decode(const Line& line) { return line.pack[0]; }

 private:
  ONEHOP_HD static uint32_t largest(uint32_t a, uint32_t b) { return a > b ? a : b; }
};

using SentinelWords = SentinelWordsOf<0xFFFFFFFEu>;        ///< fp32, fp16, bf16, fp8 e5m2
using SentinelWordsOfE4m3 = SentinelWordsOf<0xFFFFFF7Fu>;  ///< 0xFE is a number there, 0x7F is not

/// Flag words, for every type: 8 bytes, 4 of data and the low 32 bits of the epoch. A word has arrived when
/// its flag is the epoch of the running operation. Relies on one property of the fabric: an aligned store of
/// 8 bytes is seen whole or not at all.
struct FlagWords {
  static constexpr WordKind kKind = WordKind::kFlag;
  static constexpr uint32_t kPacks = Layout::expansion(kKind);

  struct Line {
    Pack pack[kPacks];
  };

  ONEHOP_HD static Pack sendable(const Pack& payload) { return payload; }

  ONEHOP_HD static Line encode(const Pack& p, uint32_t epoch) {
    return {{{{p.word[0], epoch, p.word[1], epoch}}, {{p.word[2], epoch, p.word[3], epoch}}}};
  }

  /// As in SentinelWords.
  ONEHOP_HD static uint32_t look(uint32_t seen, const Line& line, uint32_t epoch) {
    const Pack &a = line.pack[0], &b = line.pack[1];
    return seen | (a.word[1] ^ epoch) | (a.word[3] ^ epoch) | (b.word[1] ^ epoch) | (b.word[3] ^ epoch);
  }
  ONEHOP_HD static bool complete(uint32_t seen) { return seen == 0; }

  ONEHOP_HD static Pack decode(const Line& line) {
    return {{line.pack[0].word[0], line.pack[0].word[2], line.pack[1].word[0], line.pack[1].word[2]}};
  }
};

/// Whether one line has arrived.
template <class Words>
ONEHOP_HD bool arrived(const typename Words::Line& line, uint32_t epoch) {
  return Words::complete(Words::look(0, line, epoch));
}

}  // namespace onehop
