/* The public C interface of onehop, for tools and tests. A job needs none of it.
 *
 * The plugin is loaded by NCCL, not linked; find these functions with dlsym on a handle from
 * dlopen("libnccl-net-onehop.so", RTLD_NOLOAD | RTLD_NOW). All may be called from any thread. */
#ifndef ONEHOP_ONEHOP_H
#define ONEHOP_ONEHOP_H

#include <stddef.h>
#include <stdint.h>

#define ONEHOP_VERSION "0.1.0"

#define ONEHOP_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

struct ncclComm;

/* The version of the loaded plugin, such as "0.1.0". */
ONEHOP_API const char* onehopVersion(void);

enum onehopState {
  onehopUnknown =
      0,        /* no all-reduce was called on this communicator yet, or it is not one of a patched libnccl */
  onehopOn = 1, /* eligible calls are taken */
  onehopOff = 2,    /* every call goes to NCCL */
  onehopFailed = 3, /* aborted, or a peer's data did not come within ONEHOP_TIMEOUT_S */
};

typedef struct {
  enum onehopState state;
  char reason[256];   /* why it is off or failed, else empty */
  uint64_t max_bytes; /* largest call that is taken, 0 unless it is on */
  uint64_t taken;     /* calls served by onehop */
  uint64_t passed;    /* calls passed to NCCL */
  /* What this rank's first eligible call took to decide this: first until all ranks were in it and NCCL had
   * connected for the exchange, as it would for the call itself; then for the set-up. */
  uint64_t meeting_ns, set_up_ns;
  uint64_t staging_bytes; /* of GPU or host memory that this rank holds for it */
} onehopCommStatus;

/* What onehop decided for a communicator, and what it did. Returns 0, or -1 if an argument is null. */
ONEHOP_API int onehopGetCommStatus(struct ncclComm* comm, onehopCommStatus* status);

typedef struct {
  uint32_t images; /* libnccl images whose functions are taken over */
  uint64_t seen;   /* ncclAllReduce calls that reached onehop, in this process */
  uint64_t taken;  /* of these, calls served by onehop */
  uint64_t passed; /* of these, calls passed to NCCL */
  uint64_t communicators_on;
  uint64_t communicators_off;
} onehopStatistics;

/* Sums over the process, since the plugin was loaded. Returns 0, or -1 if the argument is null. */
ONEHOP_API int onehopGetStatistics(onehopStatistics* statistics);

/* From now on take (1) or pass (0) the eligible calls of a communicator that is on. Collective: every rank of
 * the communicator must call it at the same place between its calls, else the job hangs. Returns 0, or -1 if
 * the communicator is not on. */
ONEHOP_API int onehopEnable(struct ncclComm* comm, int enable);

/* For `onehop tune`. What a plan file knows this communicator by, and the methods that it may name, as JSON:
 * {"machine": {...}, "methods": [...], "islands": "0,1/2,3", "blocks": N}. Only where ONEHOP_PLAN names a
 * file that every rank has, be it one without plans. Returns 0, or -1 if the communicator is not on, has no
 * such file, or `size` bytes are too few. */
ONEHOP_API int onehopGetMachine(struct ncclComm* comm, char* text, size_t size);

/* For `onehop tune`. From now on the communicator does what its plan in this text says, which has the form of
 * a plan file. Collective like onehopEnable(), and with the same text on every rank; no call may be under
 * way. Returns 0, or -1 with nothing changed and the reason in `why`. */
ONEHOP_API int onehopSetPlan(struct ncclComm* comm, const char* text, char* why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
