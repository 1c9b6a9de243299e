#include "tools/onehop/bench/worker.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "tools/onehop/bench/channel.hpp"
#include "tools/onehop/bench/interrupt.hpp"
#include "tools/onehop/bench/ranks.hpp"

namespace onehop::bench {
namespace {

constexpr char kHex[] = "0123456789abcdef";

std::string to_hex(const ncclUniqueId& id) {
  std::string text;
  for (const char c : id.internal) {
    text += kHex[static_cast<unsigned char>(c) >> 4];
    text += kHex[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

ncclUniqueId from_hex(const std::string& text) {
  ncclUniqueId id{};
  const std::string digits = kHex;
  for (size_t i = 0; i < sizeof(id.internal) && 2 * i + 1 < text.size(); ++i)
    id.internal[i] = static_cast<char>(digits.find(text[2 * i]) << 4 | digits.find(text[2 * i + 1]));
  return id;
}

class Worker {
 public:
  explicit Worker(int fd) : channel_(fd) {}

  int serve() {
    while (std::optional<Json> command = channel_.receive()) {
      const std::string what = command->value("do", "");
      if (what == "goodbye") {
        if (ranks_) ranks_->close();
        channel_.send(Json::object());
        return 0;
      }
      if (!channel_.send(answer(what, *command))) return 1;
    }
    return 1;
  }

 private:
  /// Any thread may fail; the others may never come back from where they are, so the process ends here.
  [[noreturn]] void fail(const std::string& why) {
    channel_.send({{"error", why}});
    _exit(1);
  }

  Json answer(const std::string& what, const Json& command) {
    if (what == "load") return load(command);
    if (what == "id") return id();
    if (what == "open") return open(command);
    if (what == "set up") return set_up();
    if (what == "prepare") return prepare(command);
    if (what == "measure") return measure(command);
    if (what == "finish") return {{"wrong", ranks_->finish()}};
    fail("unknown command " + what);
  }

  Json load(const Json& command) {
    Result<Libraries> loaded = load_libraries(command.at("nccl"), command.at("cudart"));
    if (!loaded) fail(loaded.reason());
    libraries_ = *loaded;
    int gpus = 0, version = 0, runtime = 0, peers = 0;
    if (libraries_.cuda.GetDeviceCount(&gpus) != cudaSuccess || gpus == 0)
      fail("there is no GPU that CUDA can use");
    // Room for the structure of another release; its first field is the name in all of them.
    alignas(cudaDeviceProp) char properties[8192] = {};
    libraries_.cuda.GetDeviceProperties(reinterpret_cast<cudaDeviceProp*>(properties), 0);
    libraries_.cuda.RuntimeGetVersion(&runtime);
    libraries_.nccl.GetVersion(&version);
    if (gpus > 1) libraries_.cuda.DeviceCanAccessPeer(&peers, 0, 1);
    return {{"gpus", gpus},    {"gpu", std::string(properties)}, {"peers", peers != 0}, {"cuda", runtime},
            {"nccl", version}, {"standin", libraries_.standin}};
  }

  Json id() {
    ncclUniqueId made;
    if (const ncclResult_t result = libraries_.nccl.GetUniqueId(&made); result != ncclSuccess)
      fail(std::string("ncclGetUniqueId: ") + libraries_.nccl.GetErrorString(result));
    return {{"id", to_hex(made)}};
  }

  Json open(const Json& command) {
    RanksPlan plan;
    plan.ranks = command.at("ranks");
    plan.first = command.at("first");
    plan.devices = command.at("devices").get<std::vector<int>>();
    plan.group = command.at("group");
    plan.memory = command.at("memory");
    ranks_ = std::make_unique<Ranks>(libraries_, plan, [this](const std::string& why) { fail(why); });
    ranks_->open(from_hex(command.at("id")));
    onehop_ = find_onehop();
    if (command.at("onehop") != static_cast<bool>(onehop_))
      fail(onehop_ ? "onehop was loaded into a process that must run stock NCCL"
                   : "NCCL did not load the plugin " + command.at("plugin").get<std::string>());
    return {{"version", onehop_ ? onehop_.version() : ""}};
  }

  Json set_up() {
    const double first_call_ms = ranks_->set_up();
    const onehopCommStatus status = this->status();
    return {{"on", status.state == onehopOn},
            {"reason", status.reason},
            {"max_bytes", status.max_bytes},
            {"first_call_ms", first_call_ms},
            {"set_up_ms", static_cast<double>(status.set_up_ns) / 1e6},
            {"staging_bytes", status.staging_bytes}};
  }

  Json prepare(const Json& command) {
    Case what;
    what.mode = static_cast<Mode>(command.at("mode").get<int>());
    what.type = find_type(command.at("type"));
    what.in_place = command.at("in_place");
    what.bytes = command.at("bytes");
    what.calls = command.at("calls");
    const uint64_t before = status().taken;
    const size_t wrong = ranks_->prepare(what);
    return {{"wrong", wrong}, {"taken", status().taken > before}};
  }

  Json measure(const Json& command) {
    const Times times = ranks_->measure(command.at("samples"));
    return {{"us", times.us}, {"host_us", times.host_us}};
  }

  onehopCommStatus status() const {
    onehopCommStatus status{};
    if (onehop_) onehop_.status(ranks_->comm(), &status);
    return status;
  }

  Channel channel_;
  Libraries libraries_;
  LoadedOnehop onehop_;
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace

int serve(int channel_fd) {
  // Never outlive the command, whatever ends it, and whatever this process waits for.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ignore_interrupts();
  return Worker(channel_fd).serve();
}

}  // namespace onehop::bench
