/* A job that is linked to libnccl. It is built in several ways, which differ in how a call gets there. */
#include "test/object/calls.h"

/* Declared by hand: nccl.h needs CUDA's headers. */
int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*);
int pncclAllReduce(const void*, void*, size_t, int, int, void*, void*);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclCommGetAsyncError(void*, int*);
int ncclGetUniqueId(void*);

/* Kept in memory from before the plugin is loaded. */
static volatile all_reduce_function early = &ncclAllReduce;

int main(void) {
  char id[128];
  /* The first thing that a job does: it makes NCCL load its plugins. */
  printf("0 ncclGetUniqueId %d\n", ncclGetUniqueId(id));
  printf("seen %ld\n", seen());

  const struct library functions = {early, &pncclAllReduce, &ncclGroupStart, &ncclGroupEnd,
                                    &ncclCommGetAsyncError};
  call_all(0, &functions);
  /* Not through pointers: this is where PLT and GOT come in. */
  long before = seen();
  float value = 1;
  say(0, "direct-ncclAllReduce", ncclAllReduce(&value, &value, 1, 7, 0, NULL, NULL), before);
  before = seen();
  say(0, "direct-pncclAllReduce", pncclAllReduce(&value, &value, 1, 7, 0, NULL, NULL), before);
  before = seen();
  say(0, "direct-ncclGroupStart", ncclGroupStart(), before);
  before = seen();
  say(0, "direct-ncclGroupEnd", ncclGroupEnd(), before);
  return 0;
}
