/* A libcuda.so.1 that writes to ONEHOP_TEST_RECORD that it was loaded and what was called. Nothing in it
 * works. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void record(const char* what) {
  const char* path = getenv("ONEHOP_TEST_RECORD");
  const int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  char line[128];
  const size_t length = strlen(what) < sizeof line - 1 ? strlen(what) : sizeof line - 1;
  memcpy(line, what, length);
  line[length] = '\n';
  if (write(file, line, length + 1) < 0) abort(); /* a record that is lost would let a test pass */
  close(file);
}

__attribute__((constructor)) static void loaded(void) {
  record("loaded");
}

enum { kNotInitialized = 3, kNoDevice = 100, kNotFound = 500 };

#define RECORDED(name, result)    \
  int name(void);                 \
  int name(void) {                \
    return record(#name), result; \
  }

/* The arguments do not matter: none is read. */
RECORDED(cuInit, kNoDevice)
RECORDED(cuGetProcAddress, kNotFound)
RECORDED(cuGetProcAddress_v2, kNotFound)
RECORDED(cuGetExportTable, kNotFound)
RECORDED(cuDeviceGetCount, kNotInitialized)
RECORDED(cuDeviceGet, kNotInitialized)
RECORDED(cuCtxGetCurrent, kNotInitialized)
RECORDED(cuDevicePrimaryCtxRetain, kNotInitialized)
RECORDED(cuModuleLoadData, kNotInitialized)
RECORDED(cuLibraryLoadData, kNotInitialized)

int cuDriverGetVersion(int* version);
int cuDriverGetVersion(int* version) {
  record("cuDriverGetVersion");
  *version = 13000;
  return 0;
}
