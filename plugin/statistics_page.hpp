// The page in which a process keeps its statistics, and how another process reads it.
//
// It is a memfd named "onehop-stats", which /proc/<pid>/fd leads to: no thread, no socket, no file name, and
// only who may look into the process at all may open it. Whoever reads it copies it first and believes
// nothing in it: the process that wrote it may be anybody's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "plugin/result.hpp"
#include "plugin/statistics.hpp"

namespace onehop {

inline constexpr const char* kStatisticsName = "onehop-stats";

enum class RecordState : uint32_t { kFree, kOn, kOff, kFailed };

/// One communicator. Everything but the state and the counters is written before the record is listed.
struct CommunicatorRecord {
  RecordState state;
  int32_t rank, ranks;
  uint32_t reserved;
  uint64_t handle;      ///< NCCL's, which tells the communicators of a process apart
  uint64_t meeting_ns;  ///< until all ranks were in their first call and NCCL had connected
  uint64_t set_up_ns;   ///< after that
  uint64_t staging_bytes;
  char plan[512];    ///< what is taken with which method, if it is on
  char reason[256];  ///< why it is off or failed
  Statistics statistics;
};

struct StatisticsPage {
  static constexpr uint64_t kMagic = 0x7374617473'31686Full;
  /// Raised when the meaning of a field changes; sizes are compared as well.
  static constexpr uint32_t kLayout = 2;
  static constexpr uint32_t kRecords = 256;

  uint64_t magic;
  uint32_t layout, page_bytes, record_bytes, records, buckets, methods, pass_reasons;
  int32_t pid;        ///< as the process itself sees it
  uint32_t changes;   ///< odd while communicators come or go: a copy made meanwhile may be torn
  uint32_t unlisted;  ///< living communicators for which there was no record
  uint32_t images;    ///< libnccl images that were taken over
  char version[32];
  Statistics elsewhere;  ///< calls on communicators that onehop does not know
  Statistics gone;       ///< of communicators that were destroyed
  CommunicatorRecord communicators[kRecords];
};
static_assert(std::is_trivially_copyable_v<StatisticsPage> && std::is_standard_layout_v<StatisticsPage>);

/// The page at one moment.
struct StatisticsSnapshot {
  struct Listed {
    RecordState state = RecordState::kOn;
    int32_t rank = 0, ranks = 0;
    uint64_t handle = 0, meeting_ns = 0, set_up_ns = 0, staging_bytes = 0;
    std::string plan = {}, reason = {};
    Statistics statistics = {};
  };
  std::string version;
  int32_t pid = 0;
  uint32_t images = 0, unlisted = 0;
  Statistics elsewhere, gone;
  std::vector<Listed> communicators;

  /// All calls of the process.
  Statistics sums() const;
};

/// Fills in what every page begins with.
void begin_page(StatisticsPage&, int32_t pid);

StatisticsSnapshot::Listed listed(const CommunicatorRecord&);

/// From a copy of a page, of which nothing is believed. Texts come out as printable ASCII.
Result<StatisticsSnapshot> read_page(std::span<const unsigned char> bytes);

}  // namespace onehop
