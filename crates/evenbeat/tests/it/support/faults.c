/* Preloaded into a node, and into nothing that it starts: a wall clock that can be set, and forks that can fail.
 *
 * The file EVENBEAT_TEST_FAULTS has two numbers of eight bytes: the milliseconds that the wall clock is ahead, and
 * whether no process can be started. They hold from the moment they are written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <dlfcn.h>

static volatile long long nothing[2], *faults = nothing;

__attribute__((constructor)) static void open_faults(void) {
  const char *path = getenv("EVENBEAT_TEST_FAULTS");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) abort();
  void *seen = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
  if (seen == MAP_FAILED) abort();
  faults = seen;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    long long nanos = now->tv_nsec + faults[0] % 1000 * 1000000;
    now->tv_sec += faults[0] / 1000;
    if (nanos < 0) now->tv_sec--, nanos += 1000000000;
    if (1000000000 <= nanos) now->tv_sec++, nanos -= 1000000000;
    now->tv_nsec = nanos;
  }
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec it;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &it)) return -1;
  now->tv_sec = it.tv_sec;
  now->tv_usec = it.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec it;
  if (clock_gettime(CLOCK_REALTIME, &it)) return -1;
  if (now) *now = it.tv_sec;
  return it.tv_sec;
}

typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]);

#define SPAWN(name)                                                                                              \
  int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how, \
           char *const words[], char *const variables[]) {                                                      \
    if (faults[1]) return EAGAIN;                                                                                \
    return ((spawn_fn *)dlsym(RTLD_NEXT, #name))(pid, path, actions, how, words, variables);                     \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

pid_t fork(void) {
  if (faults[1]) {
    errno = EAGAIN;
    return -1;
  }
  return ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))();
}
