/* What the test programs call in a libnccl, and how they say what came of it. Plain C: a job need not have a
 * C++ runtime. */
#ifndef ONEHOP_TEST_OBJECT_CALLS_H
#define ONEHOP_TEST_OBJECT_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onehop/onehop.h"

/* The functions as a caller in machine code sees them; the libraries are not what they are declared for. */
typedef int (*all_reduce_function)(const void*, void*, size_t, int, int, void*, void*);
typedef int (*group_function)(void);
typedef int (*async_error_function)(void*, int*);
typedef int (*unique_id_function)(void* id128);

struct library {
  all_reduce_function all_reduce, profiled_all_reduce;
  group_function group_start, group_end;
  async_error_function get_async_error;
};

/* ncclAllReduce calls that reached onehop, or -1 where the plugin is not loaded. ONEHOP_TEST_PLUGIN is its
 * path. */
static long seen(void) {
  const char* path = getenv("ONEHOP_TEST_PLUGIN");
  void* plugin = path != NULL ? dlopen(path, RTLD_NOLOAD | RTLD_NOW) : NULL;
  if (plugin == NULL) return -1;
  int (*get)(onehopStatistics*) = (int (*)(onehopStatistics*))dlsym(plugin, "onehopGetStatistics");
  onehopStatistics statistics;
  const long result = get != NULL && get(&statistics) == 0 ? (long)statistics.seen : -2;
  dlclose(plugin);
  return result;
}

/* "LIBRARY FUNCTION RESULT +SEEN": `seen` says by how much onehop's count went up. */
static void say(int library, const char* function, int result, long seen_before) {
  printf("%d %s %d", library, function, result);
  if (seen_before >= 0) printf(" +%ld", seen() - seen_before);
  printf("\n");
}

/* Every call has no communicator: these are all that work without a GPU. */
static void call_all_reduce(int library, const char* name, all_reduce_function function) {
  const long before = seen();
  float value = 1;
  say(library, name, function(&value, &value, 1, 7, 0, NULL, NULL), before);
}

static void call_all(int library, const struct library* functions) {
  call_all_reduce(library, "ncclAllReduce", functions->all_reduce);
  if (functions->profiled_all_reduce != NULL)
    call_all_reduce(library, "pncclAllReduce", functions->profiled_all_reduce);
  long before = seen();
  int error = 0;
  say(library, "ncclCommGetAsyncError", functions->get_async_error(NULL, &error), before);
  before = seen();
  say(library, "ncclGroupStart", functions->group_start(), before);
  call_all_reduce(library, "ncclAllReduce-in-group", functions->all_reduce);
  before = seen();
  say(library, "ncclGroupEnd", functions->group_end(), before);
  before = seen();
  say(library, "ncclGroupEnd-without-start", functions->group_end(), before);
  /* The group's failures left nothing behind. */
  call_all_reduce(library, "ncclAllReduce-again", functions->all_reduce);
}

#endif
