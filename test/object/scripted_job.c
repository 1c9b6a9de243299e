/* A job that opens libraries itself, step by step as its arguments say:
 *
 *   open:PATH, open-deep:PATH, open-global:PATH   opens a library (dlopen) and takes the addresses of its
 * functions at once; the libraries are numbered from 0 plugin:PATH    opens the plugin as NCCL does unique:N
 * ncclGetUniqueId of library N: makes NCCL load its plugins call:N         calls the functions of library N
 * (calls.h) bytes:N        whether the first bytes of its functions are as they were when it was opened
 *   images         how many libraries onehop has taken over
 *   fork           what follows runs in a child, for which the parent waits
 *   spawn          runs another program, with this environment
 */
#include <sys/wait.h>
#include <unistd.h>

#include "test/object/calls.h"

enum { kMaxLibraries = 4, kWatched = 4, kBytes = 16 };

static struct opened {
  void* handle;
  struct library functions;
  const unsigned char* watched[kWatched];
  unsigned char bytes[kWatched][kBytes];
} libraries[kMaxLibraries];
static int count = 0;

static int fail(const char* what, const char* why) {
  fprintf(stderr, "scripted_job: %s: %s\n", what, why != NULL ? why : "failed");
  return 2;
}

static int open_library(const char* path, int flags) {
  struct opened* library = &libraries[count++];
  library->handle = dlopen(path, RTLD_NOW | flags);
  if (library->handle == NULL) return fail(path, dlerror());
  struct library* f = &library->functions;
  f->all_reduce = (all_reduce_function)dlsym(library->handle, "ncclAllReduce");
  f->profiled_all_reduce = (all_reduce_function)dlsym(library->handle, "pncclAllReduce");
  f->group_start = (group_function)dlsym(library->handle, "ncclGroupStart");
  f->group_end = (group_function)dlsym(library->handle, "ncclGroupEnd");
  f->get_async_error = (async_error_function)dlsym(library->handle, "ncclCommGetAsyncError");
  const void* watched[kWatched] = {(void*)f->all_reduce, (void*)f->group_start, (void*)f->group_end,
                                   (void*)f->get_async_error};
  for (int i = 0; i < kWatched; ++i) {
    library->watched[i] = watched[i];
    if (watched[i] != NULL) memcpy(library->bytes[i], watched[i], kBytes);
  }
  return 0;
}

static void compare_bytes(int number) {
  const struct opened* library = &libraries[number];
  int changed = 0;
  for (int i = 0; i < kWatched; ++i)
    if (library->watched[i] != NULL && memcmp(library->watched[i], library->bytes[i], kBytes) != 0)
      changed = 1;
  printf("%d bytes %s\n", number, changed ? "changed" : "same");
}

static void say_images(void) {
  void* plugin = dlopen(getenv("ONEHOP_TEST_PLUGIN"), RTLD_NOLOAD | RTLD_NOW);
  int (*get)(onehopStatistics*) =
      plugin != NULL ? (int (*)(onehopStatistics*))dlsym(plugin, "onehopGetStatistics") : NULL;
  onehopStatistics statistics;
  if (get != NULL && get(&statistics) == 0)
    printf("images %u\n", statistics.images);
  else
    printf("images none\n");
}

static int step(const char* name, const char* argument) {
  const int number = argument != NULL ? atoi(argument) : -1;
  if (strcmp(name, "open") == 0) return open_library(argument, RTLD_LOCAL);
  if (strcmp(name, "open-deep") == 0) return open_library(argument, RTLD_LOCAL | RTLD_DEEPBIND);
  if (strcmp(name, "open-global") == 0) return open_library(argument, RTLD_GLOBAL);
  if (strcmp(name, "plugin") == 0)
    return dlopen(argument, RTLD_NOW | RTLD_LOCAL) != NULL ? 0 : fail(argument, dlerror());
  if (strcmp(name, "unique") == 0) {
    char id[128];
    unique_id_function unique = (unique_id_function)dlsym(libraries[number].handle, "ncclGetUniqueId");
    printf("%d ncclGetUniqueId %d\n", number, unique(id));
    return 0;
  }
  if (strcmp(name, "close") == 0) return dlclose(libraries[number].handle);
  if (strcmp(name, "call") == 0) return call_all(number, &libraries[number].functions), 0;
  if (strcmp(name, "bytes") == 0) return compare_bytes(number), 0;
  if (strcmp(name, "images") == 0) return say_images(), 0;
  if (strcmp(name, "spawn") == 0) return system("true");
  return fail(name, "unknown step");
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char* argument = strchr(argv[i], ':');
    if (argument != NULL) *argument++ = '\0';
    if (strcmp(argv[i], "fork") == 0) {
      fflush(stdout);
      const pid_t child = fork();
      if (child == 0) continue;
      int status = 0;
      waitpid(child, &status, 0);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    const int failed = step(argv[i], argument);
    if (failed != 0) return failed;
  }
  return 0;
}
