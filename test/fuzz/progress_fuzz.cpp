// The records of set-up's later exchanges: how far each rank got, and the address of its staging memory. No
// address may lead to a path outside /proc/<pid>/fd, nor to anything at all unless it is plausible.
#include <algorithm>
#include <vector>

#include "plugin/setup/progress.hpp"
#include "plugin/staging/shared_memory.hpp"
#include "test/fuzz/fuzz.hpp"

namespace onehop::fuzz {
namespace {

constexpr size_t kBytes = 100000, kRounded = 102400;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
         (text == "0" || text.front() != '0');
}

void check_path(std::string_view path) {
  constexpr std::string_view kBegin = "/proc/", kMiddle = "/fd/";
  require(path.starts_with(kBegin), "a path is below /proc", std::string(path));
  path.remove_prefix(kBegin.size());
  const size_t middle = path.find(kMiddle);
  require(middle != std::string_view::npos && is_number(path.substr(0, middle)) &&
              is_number(path.substr(middle + kMiddle.size())) && path.front() != '0',
          "a path is made of a process and a descriptor", std::string(path));
}

void check_handle(const MemoryHandle& handle) {
  SharedMemoryName name;
  std::memcpy(&name, handle.bytes.data(), sizeof(name));
  const Status plausible = check_name(name, kBytes);
  if (!plausible) return require_line(plausible.reason());
  require(name.pid > 0 && name.fd >= 0 && name.bytes == kRounded, "a plausible name has legal fields");
  require(name.nonce[0] != 0 || name.nonce[1] != 0, "a plausible name has a nonce");
  check_path(path_of(name));
}

}  // namespace
}  // namespace onehop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onehop;
  using namespace onehop::fuzz;
  if (size == 0) return 0;
  std::vector<Progress> table(1 + *data % kMaxRanks);
  ++data, --size;
  SharedMemoryName name;
  name.bytes = kRounded;
  name.nonce[0] = 1;
  name.pid = 4711;
  name.fd = 9;
  for (Progress& progress : table) {
    progress.ok = 1;
    std::memcpy(progress.address.handle.bytes.data(), &name, sizeof(name));
    disturb(progress, data, size);
  }
  const auto failed = first_failure(table, "has no staging memory");
  const bool all = std::all_of(table.begin(), table.end(), [](const Progress& p) { return p.ok == 1; });
  require(failed.has_value() != all, "a failure on any rank is everyone's");
  if (failed) require_line(*failed);
  for (const Progress& progress : table) check_handle(progress.address.handle);
  return 0;
}
