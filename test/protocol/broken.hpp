// Broken designs: each leaves out or weakens one thing that the proof needs. Whatever runs them must fail.
#pragma once

#include <cstring>

#include "test/protocol/dispatch.hpp"

namespace onehop::test {

struct TwoInboxSlots : ProvenDesign {
  static constexpr bool has(Method method) {
    return method == Method::kOneShot || method == Method::kTwoShot;
  }
  struct Rules : ProvenRules {
    static constexpr uint32_t kInboxSlots = 2;
  };
};

/// For designs that break change words.
struct BrokenPull : ProvenDesign {
  static constexpr bool has(Method method) { return is_pull(method); }
};

/// An operation writes where peers may still read what the one before wrote.
struct OneChangeSlot : BrokenPull {
  template <class Words>
  struct PullRoute : Pull<Words> {
    PullRoute(const HopView& comm, Turn turn, uint32_t share = 0)
        : Pull<Words>(comm, in_slot_0(turn), share) {}
    static Turn in_slot_0(Turn turn) {
      if (Words::kKind == WordKind::kSentinel) turn.epoch = 0;
      return turn;
    }
  };
};

/// Writes what it has, also where the same was there before.
struct NeverTheSameAgain : BrokenPull {
  template <class Words>
  struct PullRoute : Pull<Words> {
    using Base = Pull<Words>;
    using Memo = typename Base::Memo;
    using Base::Base;
    template <class Mem>
    void scatter(Mem& memory, uint32_t p, uint32_t owner, uint32_t j, const Pack& sendable,
                 const Memo&) const {
      Base::scatter(memory, p, owner, j, sendable, nothing());
    }
    template <uint32_t kBound, class Mem>
    void send_to_all(Mem& memory, uint32_t i, const Pack& sendable, const Memo&) const {
      Base::template send_to_all<kBound>(memory, i, sendable, nothing());
    }
    static Memo nothing() {
      Memo memo;
      std::memset(&memo, 0xFF, sizeof(memo));
      return memo;
    }
  };
};

/// Does not remember what it took.
struct ForgetfulReader : BrokenPull {
  template <class Words>
  struct PullRoute : Pull<Words> {
    using Base = Pull<Words>;
    using Base::Base;
    struct Forgets {
      void keep(Pack*, const Pack&) const {}
    };
    template <class Mem>
    Pack take(Mem&, uint32_t r, const typename Base::Place& p, const typename Base::Arrival& arrival) const {
      Forgets memory;
      return Base::take(memory, r, p, arrival);
    }
  };
};

/// The slices of an operation lie one behind the other: with another size, a place has another reader.
struct MovingSlices : BrokenPull {
  static constexpr bool has(Method method) { return method == Method::kTwoShotPull; }
  template <class Words>
  struct PullRoute : Pull<Words> {
    using Base = Pull<Words>;
    using Memo = typename Base::Memo;
    PullRoute(const HopView& comm, const Turn& turn, uint32_t share)
        : Base(comm, turn, share),
          share_(share),
          moved_(comm.rank * (share - comm.layout.outbox_slice(Words::kKind))) {}
    template <class Mem>
    Memo recall(Mem& memory, Area area, uint32_t owner, uint32_t i) const {
      return Base::recall(memory, area, 0, area == Area::kAll ? i : owner * share_ + i);
    }
    template <class Mem>
    void scatter(Mem& memory, uint32_t p, uint32_t owner, uint32_t j, const Pack& sendable,
                 const Memo& memo) const {
      Base::scatter(memory, p, 0, owner * share_ + j, sendable, memo);
    }
    typename Base::Place place_of(Area area, uint32_t i) const {
      typename Base::Place place = Base::place_of(area, i);
      if (area == Area::kScatter) place.at += moved_ * Words::kPacks;
      return place;
    }

   private:
    const uint32_t share_, moved_;  ///< in lines; modulo 2^32
  };
};

/// Neither sentinel words are emptied nor flags renewed.
struct NoClearing : ProvenDesign {
  struct Rules : ProvenRules {
    static constexpr bool kClears = false;
    static constexpr bool kRenews = false;
  };
};

/// Flags are not renewed; sentinel words are emptied.
struct NoRenewal : ProvenDesign {
  struct Rules : ProvenRules {
    static constexpr bool kRenews = false;
  };
};

/// Compares a few bits of a flag only.
struct FewFlagBits : ProvenDesign {
  struct Flags : FlagWords {
    static uint32_t look(uint32_t seen, const Line& line, uint32_t epoch) {
      constexpr uint32_t kBits = 0xF;
      return seen | (FlagWords::look(0, line, epoch) & kBits);
    }
  };
  template <class Proven>
  using Words = std::conditional_t<std::is_same_v<Proven, FlagWords>, Flags, Proven>;
};

/// A block that was not part of the last launch has missed a turn.
struct TurnPerBlock : ProvenDesign {
  static constexpr bool has(Method method) { return method == Method::kOneShot; }
  struct Rules : ProvenRules {
    static constexpr bool kTurnPerBlock = true;
  };
};

/// Trusts that 16 bytes land at once.
struct OneFlagPerPack : ProvenDesign {
  static constexpr bool has(Method method) {
    return method == Method::kOneShot || method == Method::kTwoShotPull;
  }
  struct Flags : FlagWords {
    static uint32_t look(uint32_t seen, const Line& line, uint32_t epoch) {
      return seen | (line.pack[0].word[1] ^ epoch) | (line.pack[1].word[1] ^ epoch);
    }
  };
  template <class Proven>
  using Words = std::conditional_t<std::is_same_v<Proven, FlagWords>, Flags, Proven>;
};

/// Looks at no source but the last that there could be, which passes for arrived where it does not exist: an
/// owner adds, and sends to all, whatever has come by then.
struct OwnerDoesNotWait : ProvenDesign {
  static constexpr bool has(Method method) {
    return method == Method::kTwoShot || method == Method::kTwoShotPull;
  }
  template <class Proven>
  struct Words : Proven {
    using Unbroken = Proven;
    static uint32_t look(uint32_t /*seen*/, const typename Proven::Line& line, uint32_t epoch) {
      return Proven::look(0, line, epoch);
    }
  };
  template <class Words>
  struct PullRoute : Pull<typename Words::Unbroken> {
    using Base = Pull<typename Words::Unbroken>;
    using Base::Base;
    uint32_t judge(uint32_t /*seen*/, const typename Base::Arrival& arrival) const {
      return Base::judge(0, arrival);
    }
  };
};

}  // namespace onehop::test
