/* Opens the plugin in a process that has neither CUDA nor NCCL, and looks at what it left behind.
 * usage: alone PLUGIN. Says nothing and returns 0 if that is nothing but the mapped object. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

enum { kMaxVariables = 4096 };

struct trace {
  int variables, threads;
  long files; /* a bit for each open descriptor below 64 */
  char* environment[kMaxVariables];
  char* pointers[kMaxVariables];
  struct sigaction handlers[NSIG];
  char folder[4096];
};
static struct trace before, after;

static int count_threads(void) {
  DIR* folder = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static void look(struct trace* t) {
  t->variables = 0;
  for (char** entry = environ; *entry != NULL; ++entry) {
    t->pointers[t->variables] = *entry;
    t->environment[t->variables++] = strdup(*entry);
  }
  t->threads = count_threads();
  t->files = 0;
  for (int fd = 0; fd < 63; ++fd) {
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target) > 0) t->files |= 1L << fd;
  }
  for (int s = 1; s < NSIG; ++s) sigaction(s, NULL, &t->handlers[s]);
  if (getcwd(t->folder, sizeof t->folder) == NULL) t->folder[0] = '\0';
}

static int differences(void) {
  int found = 0;
  if (after.variables != before.variables) ++found, fprintf(stderr, "the environment has another size\n");
  for (int i = 0; i < before.variables && i < after.variables; ++i)
    if (after.pointers[i] != before.pointers[i] || strcmp(after.environment[i], before.environment[i]) != 0)
      ++found, fprintf(stderr, "the environment has changed: %s\n", after.environment[i]);
  if (after.threads != 1) ++found, fprintf(stderr, "%d threads are running\n", after.threads);
  if (after.files != before.files)
    ++found, fprintf(stderr, "files are open: %lx, were %lx\n", after.files, before.files);
  for (int s = 1; s < NSIG; ++s)
    if (after.handlers[s].sa_handler != before.handlers[s].sa_handler ||
        after.handlers[s].sa_flags != before.handlers[s].sa_flags)
      ++found, fprintf(stderr, "signal %d is handled\n", s);
  if (strcmp(after.folder, before.folder) != 0)
    ++found, fprintf(stderr, "the working directory has changed\n");
  return found;
}

static int is_mapped(const char* what) {
  char line[8192];
  int mapped = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) mapped |= strstr(line, what) != NULL;
  if (maps != NULL) fclose(maps);
  return mapped;
}

int main(int argc, char** argv) {
  (void)argc;
  look(&before);
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  look(&after);
  int found = differences();
  if (is_mapped("libcuda") || is_mapped("libnccl.so") || is_mapped("libnvidia") || is_mapped("libstdc++"))
    ++found, fprintf(stderr, "a library came with it\n");
  /* NCCL closes what it finds no symbols in. */
  const char* (*version)(void) = (const char* (*)(void))dlsym(plugin, "onehopVersion");
  if (version == NULL) return fprintf(stderr, "onehopVersion is missing\n"), 1;
  dlclose(plugin);
  if (!is_mapped(argv[1]) || strlen(version()) == 0) ++found, fprintf(stderr, "it is gone after dlclose\n");
  look(&after);
  return found + differences();
}
