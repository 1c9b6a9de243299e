/* A libnccl that counts nothing and does nothing: each function returns FAKE_ID + its place in the list
 * below, so that a caller knows which library answered.
 *
 *   FAKE_BRANCH    ncclGroupEnd has a loop back into its first bytes
 *   FAKE_PARTIAL   only some of the functions, as in a tool that stands in for ncclAllReduce
 */
#ifndef FAKE_ID
#define FAKE_ID 10
#endif

#define FAKE(name, place)   \
  int name(void);           \
  int name(void) {          \
    ++fake_calls;           \
    return FAKE_ID + place; \
  }

/* Written by each function, so that none is shorter than a jump. */
volatile int fake_calls = 0;

FAKE(ncclAllReduce, 0)
FAKE(pncclAllReduce, 1)
FAKE(ncclGroupStart, 2)
FAKE(ncclCommGetAsyncError, 4)
#ifdef FAKE_BRANCH
int ncclGroupEnd(void);
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl ncclGroupEnd\n"
    ".type ncclGroupEnd, @function\n"
    "ncclGroupEnd:\n"
    "  xor %eax, %eax\n"
    "1: inc %eax\n" /* at +2 */
    "  cmp $13, %eax\n"
    "  jne 1b\n"
    "  ret\n"
    ".size ncclGroupEnd, . - ncclGroupEnd\n");
#else
FAKE(ncclGroupEnd, 3)
#endif
#ifndef FAKE_PARTIAL
FAKE(ncclAllGather, 5)
FAKE(ncclCommDestroy, 6)
FAKE(ncclCommAbort, 7)
FAKE(ncclCommCount, 8)
FAKE(ncclCommCuDevice, 9)
FAKE(ncclCommUserRank, 10)
FAKE(ncclGetVersion, 11)
FAKE(ncclGetErrorString, 12)
FAKE(ncclGetUniqueId, 13)
#endif
