// The reference here shares no code with the kernels: it is computed in double (or 64-bit integers) and
// rounded once, or, for inputs that an order of additions would show in, in rank order in the type that the
// kernels add in.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "test/gpu/trials.hpp"

namespace onehop::test {
namespace {

constexpr uint64_t kPoison = 0xA5A5A5A5A5A5A5A5;

__device__ uint64_t hash(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Of a floating-point type. `exact_bits`, `exact_shifts`, `exact_base`: inputs are k * 2^(shift + base) with
/// so many bits in k and so many shifts: the sum of 16 is exact in the type that it is added in.
struct Format {
  int exponent_at, bias;
  int exact_bits, exact_shifts, exact_base;
};
__device__ Format format_of(Element element) {
  switch (element) {
    case Element::kFloat16:
      return {10, 15, 11, 9, -10};
    case Element::kBfloat16:
      return {7, 127, 8, 12, -8};
    case Element::kFloat8e4m3:
      return {3, 7, 4, 9, -9};
    case Element::kFloat8e5m2:
      return {2, 15, 3, 15, -16};
    case Element::kFloat64:
      return {52, 1023, 40, 1, 0};
    default:
      return {23, 127, 19, 1, 0};
  }
}

__device__ bool is_integer(Element element) {
  return element <= Element::kUint64;
}
__device__ bool is_signed(Element element) {
  return element == Element::kInt8 || element == Element::kInt32 || element == Element::kInt64;
}

__device__ uint64_t low_bits(uint64_t bits, uint32_t bytes) {
  return bytes == 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}
__device__ int64_t signed_value(uint64_t bits, uint32_t bytes) {
  const uint32_t unused = 64 - 8 * bytes;
  return static_cast<int64_t>(bits << unused) >> unused;
}

__device__ double decode(Element element, uint64_t bits) {
  switch (element) {
    case Element::kFloat16:
      return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    case Element::kBfloat16:
      return __uint_as_float(static_cast<uint32_t>(bits) << 16);
    case Element::kFloat8e4m3:
      return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<uint8_t>(bits), __NV_E4M3)));
    case Element::kFloat8e5m2:
      return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<uint8_t>(bits), __NV_E5M2)));
    case Element::kFloat64:
      return __longlong_as_double(static_cast<long long>(bits));
    default:
      return __uint_as_float(static_cast<uint32_t>(bits));
  }
}

/// Rounds once.
__device__ uint64_t encode(Element element, double value) {
  switch (element) {
    case Element::kFloat16:
      return __half_as_ushort(__double2half(value));
    case Element::kBfloat16:
      return __bfloat16_as_ushort(__double2bfloat16(value));
    case Element::kFloat8e4m3:
      return __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    case Element::kFloat8e5m2:
      return __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
    case Element::kFloat64:
      return static_cast<uint64_t>(__double_as_longlong(value));
    default:
      return __float_as_uint(__double2float_rn(value));
  }
}

__device__ double exact_input(const TrialBatch& batch, const Trial& trial, uint64_t random, uint32_t rank,
                              uint32_t i) {
  const double sign = (random & 1) != 0 ? -1 : 1;
  random >>= 1;
  // Threes from half of the ranks only: 3^8 times a power of two is exact in fp32.
  if (batch.reduction == Reduction::kProd)
    return sign * ldexp(rank % 2 == 0 && (random & 4) != 0 ? 1.5 : 1.0, static_cast<int>(random % 3) - 1);
  const Format format = format_of(batch.element);
  uint64_t k = random & ((uint64_t{1} << format.exact_bits) - 1);
  random >>= format.exact_bits;
  if (random % 16 == 0) k = 0;  // zeros of both signs
  const auto shift = static_cast<int>((random >> 4) % static_cast<uint64_t>(format.exact_shifts));
  const auto same_on_all_ranks = static_cast<int>(hash(trial.seed, i) % 4);
  return sign * ldexp(static_cast<double>(k), shift + format.exact_base + same_on_all_ranks);
}

/// Any bits, among them whole packs of the words that the protocol uses itself; most of a magnitude at which
/// additions round.
__device__ uint64_t any_input(const TrialBatch& batch, const Trial& trial, uint64_t random, uint32_t rank,
                              uint32_t i) {
  const auto bytes = static_cast<uint32_t>(element_size(batch.element));
  const uint64_t pack = hash(hash(trial.seed, rank), i / (16 / bytes)) % 37;
  if (pack < 2) return low_bits(pack == 0 ? ~uint64_t{0} : 0, bytes);
  if (is_integer(batch.element) || hash(random, 1) % 4 == 0) return low_bits(random, bytes);
  const Format format = format_of(batch.element);
  const uint64_t exponent = static_cast<uint64_t>(format.bias) - 2 + hash(random, 2) % 4,
                 fraction = random & ((uint64_t{1} << format.exponent_at) - 1);
  return (random >> 63) << (8 * bytes - 1) | exponent << format.exponent_at | fraction;
}

__device__ uint64_t input(const TrialBatch& batch, const Trial& trial, uint32_t rank, uint32_t i) {
  const uint64_t random = hash(hash(trial.seed, rank), uint64_t{i} << 8);
  if (trial.exact && !is_integer(batch.element))
    return encode(batch.element, exact_input(batch, trial, random, rank, i));
  return any_input(batch, trial, random, rank, i);
}

__device__ float sum_of(float a, float b) {
  return __fadd_rn(a, b);
}
__device__ double sum_of(double a, double b) {
  return __dadd_rn(a, b);
}
__device__ float product_of(float a, float b) {
  return __fmul_rn(a, b);
}
__device__ double product_of(double a, double b) {
  return __dmul_rn(a, b);
}
__device__ float quotient_of(float a, float b) {
  return __fdiv_rn(a, b);
}
__device__ double quotient_of(double a, double b) {
  return __ddiv_rn(a, b);
}

template <class Real>
__device__ Real combined(Reduction reduction, Real a, Real b) {
  const bool max = reduction == Reduction::kMax;
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAvg:
      return sum_of(a, b);
    case Reduction::kProd:
      return product_of(a, b);
    case Reduction::kMax:
    case Reduction::kMin:
      if (isnan(a)) return b;
      if (isnan(b)) return a;
      if (a == b) return static_cast<bool>(signbit(a)) == max ? b : a;
      return (a < b) == max ? b : a;
  }
  return a;
}

template <class Real>
__device__ uint64_t real_reference(const TrialBatch& batch, const Trial& trial, uint32_t i) {
  auto value = static_cast<Real>(decode(batch.element, input(batch, trial, 0, i)));
  for (uint32_t r = 1; r < batch.ranks; ++r)
    value =
        combined(batch.reduction, value, static_cast<Real>(decode(batch.element, input(batch, trial, r, i))));
  if (batch.reduction == Reduction::kAvg) value = quotient_of(value, static_cast<Real>(batch.ranks));
  return encode(batch.element, value);
}

__device__ bool is_less(bool with_sign, uint64_t a, uint64_t b) {
  return with_sign ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
}

__device__ uint64_t integer_reference(const TrialBatch& batch, const Trial& trial, uint32_t i) {
  const auto bytes = static_cast<uint32_t>(element_size(batch.element));
  const bool with_sign = is_signed(batch.element);
  const auto extended = [&](uint64_t bits) {
    return with_sign ? static_cast<uint64_t>(signed_value(bits, bytes)) : low_bits(bits, bytes);
  };
  uint64_t value = extended(input(batch, trial, 0, i));
  for (uint32_t r = 1; r < batch.ranks; ++r) {
    const uint64_t other = extended(input(batch, trial, r, i));
    if (batch.reduction == Reduction::kProd)
      value *= other;
    else if (batch.reduction == Reduction::kMax)
      value = is_less(with_sign, value, other) ? other : value;
    else if (batch.reduction == Reduction::kMin)
      value = is_less(with_sign, other, value) ? other : value;
    else
      value += other;
  }
  if (batch.reduction == Reduction::kAvg) {
    value = extended(value);
    value =
        with_sign ? static_cast<uint64_t>(static_cast<int64_t>(value) / batch.ranks) : value / batch.ranks;
    if (with_sign) value = static_cast<uint64_t>(static_cast<int64_t>(extended(value)));
  }
  return low_bits(value, bytes);
}

__device__ uint64_t reference(const TrialBatch& batch, const Trial& trial, uint32_t i) {
  if (is_integer(batch.element)) return integer_reference(batch, trial, i);
  if (trial.exact || batch.element == Element::kFloat64) return real_reference<double>(batch, trial, i);
  return real_reference<float>(batch, trial, i);
}

__device__ uint64_t load(const unsigned char* base, uint32_t bytes, uint32_t e) {
  switch (bytes) {
    case 1:
      return base[e];
    case 2:
      return reinterpret_cast<const uint16_t*>(base)[e];
    case 4:
      return reinterpret_cast<const uint32_t*>(base)[e];
    default:
      return reinterpret_cast<const uint64_t*>(base)[e];
  }
}

__device__ void store(unsigned char* base, uint32_t bytes, uint32_t e, uint64_t bits) {
  switch (bytes) {
    case 1:
      base[e] = static_cast<unsigned char>(bits);
      return;
    case 2:
      reinterpret_cast<uint16_t*>(base)[e] = static_cast<uint16_t>(bits);
      return;
    case 4:
      reinterpret_cast<uint32_t*>(base)[e] = static_cast<uint32_t>(bits);
      return;
    default:
      reinterpret_cast<uint64_t*>(base)[e] = bits;
  }
}

/// What element e of this rank's send memory holds.
__device__ uint64_t sent(const TrialBatch& batch, const Trial& trial, uint32_t first, uint32_t e) {
  if (e - first < trial.count) return input(batch, trial, batch.rank, e - first);
  return low_bits(kPoison, static_cast<uint32_t>(element_size(batch.element)));
}

__global__ void prepare_kernel(const TrialBatch batch) {
  const Trial trial = batch.trials[batch.first + blockIdx.y];
  const auto bytes = static_cast<uint32_t>(element_size(batch.element));
  const bool in_place = (trial.in_place >> batch.rank & 1) != 0;
  for (uint32_t e = blockIdx.x * blockDim.x + threadIdx.x; e < trial.elements; e += gridDim.x * blockDim.x) {
    store(batch.send + trial.at, bytes, e, sent(batch, trial, trial.send_first, e));
    store(batch.receive + trial.at, bytes, e,
          in_place ? sent(batch, trial, trial.receive_first, e) : low_bits(kPoison, bytes));
  }
}

__device__ void report(const TrialBatch& batch, Fault::Where where, uint32_t trial, uint32_t index,
                       uint64_t got, uint64_t want) {
  if (atomicAdd(&batch.fault->wrong, 1u) != 0) return;
  batch.fault->where = where;
  batch.fault->trial = trial;
  batch.fault->index = index;
  batch.fault->got = got;
  batch.fault->want = want;
}

__global__ void check_kernel(const TrialBatch batch) {
  const uint32_t number = batch.first + blockIdx.y;
  const Trial trial = batch.trials[number];
  const auto bytes = static_cast<uint32_t>(element_size(batch.element));
  const bool real = !is_integer(batch.element);
  uint64_t digest = 0;
  for (uint32_t e = blockIdx.x * blockDim.x + threadIdx.x; e < trial.elements; e += gridDim.x * blockDim.x) {
    const uint32_t i = e - trial.receive_first;
    const uint64_t got = load(batch.receive + trial.at, bytes, e);
    if (i < trial.count) {
      const uint64_t want = reference(batch, trial, i);
      if (got != want && !(real && isnan(decode(batch.element, got)) && isnan(decode(batch.element, want))))
        report(batch, Fault::kResult, number, i, got, want);
      digest += hash(got, i);
    } else if (got != low_bits(kPoison, bytes)) {
      report(batch, Fault::kAroundResult, number, i, got, low_bits(kPoison, bytes));
    }
    const uint64_t send = load(batch.send + trial.at, bytes, e),
                   was = sent(batch, trial, trial.send_first, e);
    if (send != was) report(batch, Fault::kSend, number, e - trial.send_first, send, was);
  }
  for (int other = 16; other > 0; other /= 2) digest += __shfl_down_sync(0xFFFFFFFFu, digest, other);
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  if (threadIdx.x % 32 == 0 && digest != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(batch.digests + number), digest);
}

/// Blocks for each trial: most are small.
constexpr uint32_t kBlocks = 16, kThreads = 256;

}  // namespace

cudaError_t prepare(const TrialBatch& batch, cudaStream_t stream) {
  prepare_kernel<<<dim3(kBlocks, batch.count), kThreads, 0, stream>>>(batch);
  return cudaGetLastError();
}

cudaError_t check(const TrialBatch& batch, cudaStream_t stream) {
  check_kernel<<<dim3(kBlocks, batch.count), kThreads, 0, stream>>>(batch);
  return cudaGetLastError();
}

}  // namespace onehop::test
