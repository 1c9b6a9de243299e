#include "plugin/statistics_page.hpp"

#include <cstddef>
#include <cstring>
#include <memory>

#include "onehop/onehop.h"

namespace onehop {
namespace {

/// What a terminal or a JSON reader can be given without a thought.
template <size_t N>
std::string printable(const char (&text)[N]) {
  std::string result(text, strnlen(text, N));
  for (char& c : result)
    if (c < 0x20 || c > 0x7E) c = '?';
  return result;
}

bool known(RecordState state) {
  return state == RecordState::kOn || state == RecordState::kOff || state == RecordState::kFailed;
}

}  // namespace

Statistics StatisticsSnapshot::sums() const {
  Statistics all;
  all.add(elsewhere);
  all.add(gone);
  for (const Listed& comm : communicators) all.add(comm.statistics);
  return all;
}

void begin_page(StatisticsPage& page, int32_t pid) {
  page.magic = StatisticsPage::kMagic;
  page.layout = StatisticsPage::kLayout;
  page.page_bytes = sizeof(StatisticsPage);
  page.record_bytes = sizeof(CommunicatorRecord);
  page.records = StatisticsPage::kRecords;
  page.buckets = Statistics::kBuckets;
  page.methods = kMethods;
  page.pass_reasons = kPassReasons;
  page.pid = pid;
  std::strncpy(page.version, ONEHOP_VERSION, sizeof(page.version) - 1);
}

StatisticsSnapshot::Listed listed(const CommunicatorRecord& record) {
  StatisticsSnapshot::Listed facts{record.state,
                                   record.rank,
                                   record.ranks,
                                   record.handle,
                                   record.meeting_ns,
                                   record.set_up_ns,
                                   record.staging_bytes,
                                   printable(record.plan),
                                   printable(record.reason),
                                   {}};
  facts.statistics.add(record.statistics);
  // A failure is noticed where there is no time for words.
  if (facts.state == RecordState::kFailed) facts.reason = "aborted or timed out";
  return facts;
}

Result<StatisticsSnapshot> read_page(std::span<const unsigned char> bytes) {
  if (bytes.size() < offsetof(StatisticsPage, elsewhere)) return Error{"it is too short"};
  StatisticsPage expected_head{};
  begin_page(expected_head, 0);
  // On the heap, and aligned whatever `bytes` is.
  const auto page = std::make_unique<StatisticsPage>();
  std::memcpy(page.get(), bytes.data(), std::min(bytes.size(), sizeof(StatisticsPage)));
  if (page->magic != StatisticsPage::kMagic) return Error{"it does not begin as onehop's statistics do"};
  const std::string version = printable(page->version);
  if (page->layout != expected_head.layout || page->page_bytes != expected_head.page_bytes ||
      page->record_bytes != expected_head.record_bytes || page->records != expected_head.records ||
      page->buckets != expected_head.buckets || page->methods != expected_head.methods ||
      page->pass_reasons != expected_head.pass_reasons)
    return Error{"it was written by another version of onehop (" + version + ", this is " ONEHOP_VERSION ")"};
  if (bytes.size() != sizeof(StatisticsPage)) return Error{"it has not the size that it says"};
  if (page->changes % 2 != 0) return Error{"it is being changed"};

  StatisticsSnapshot snapshot;
  snapshot.version = version;
  snapshot.pid = page->pid;
  snapshot.images = page->images;
  snapshot.unlisted = page->unlisted;
  snapshot.elsewhere = page->elsewhere;
  snapshot.gone = page->gone;
  for (const CommunicatorRecord& record : page->communicators) {
    if (record.state == RecordState::kFree) continue;
    if (!known(record.state)) return Error{"it is damaged: a communicator in no known state"};
    if (record.ranks < 0 || record.rank < 0 || record.rank > record.ranks)
      return Error{"it is damaged: a communicator with an impossible rank"};
    snapshot.communicators.push_back(listed(record));
  }
  return snapshot;
}

}  // namespace onehop
