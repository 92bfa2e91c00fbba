/* The witness: a run that proves by the kernel's word that it was alone, and leaves a trace of itself.
 *
 *   witness FOLDER TICKS MILLIS
 *
 * It takes FOLDER/<job>.lock, or else notes a conflict: another copy of its job executes. It notes its start in
 * FOLDER/<job>.lines, counts TICKS in FOLDER/<job>.progress, each after so many milliseconds, and notes its end.
 * Every note is one write to the end of a file, so that notes of several do not mix.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char *folder, *job, *run, *fence;

static int opened(const char *ending, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", folder, job, ending);
  return open(path, flags | O_CREAT | O_CLOEXEC, 0600);
}

/* What could not be noted is no trace at all: the run fails, and whoever looks finds no end. */
static void note(const char *ending, const char *what) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  char line[512];
  int length = snprintf(line, sizeof line, "%s %s %s %lld %d\n", what, run, fence,
                        now.tv_sec * 1000000000LL + now.tv_nsec, getpid());
  int file = opened(ending, O_WRONLY | O_APPEND);
  if (file < 0 || write(file, line, length) != length) exit(98);
  close(file);
}

int main(int n_words, char **words) {
  job = getenv("EVENBEAT_JOB");
  run = getenv("EVENBEAT_RUN_ID");
  fence = getenv("EVENBEAT_FENCE");
  if (n_words != 4 || !job || !run || !fence) {
    fputs("usage, as a run: witness FOLDER TICKS MILLIS\n", stderr);
    return 97;
  }
  folder = words[1];
  long ticks = atol(words[2]), millis = atol(words[3]);
  int lock = opened(".lock", O_RDWR);
  if (lock < 0) return 98;
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    note(".conflicts", "conflict");
    return 99;
  }
  note(".lines", "start");
  int progress = opened(".progress", O_WRONLY);
  for (long tick = 1; tick <= ticks; tick++) {
    struct timespec pause = {millis / 1000, millis % 1000 * 1000000};
    nanosleep(&pause, NULL);
    char text[32];
    int length = snprintf(text, sizeof text, "%s %ld\n", fence, tick);
    if (pwrite(progress, text, length, 0) != length) return 98;
  }
  note(".lines", "end");
  return 0;
}
