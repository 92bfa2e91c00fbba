/* The writer: a run that writes all the time to a place that others write to, and shows its fence with each write.
 *
 *   writer FOLDER TICKS MILLIS
 *
 * It takes no lock: what keeps a second copy from doing harm is whoever looks at the fence. Every write is a line at the
 * end of FOLDER/<job>.writes: the fence, the boot clock in nanoseconds, and the run.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int n_words, char **words) {
  const char *job = getenv("EVENBEAT_JOB"), *fence = getenv("EVENBEAT_FENCE"),
             *run = getenv("EVENBEAT_RUN_ID");
  if (n_words != 4 || !job || !fence || !run) {
    fputs("usage, as a run: writer FOLDER TICKS MILLIS\n", stderr);
    return 97;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.writes", words[1], job);
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return 98;
  long millis = atol(words[3]);
  for (long ticks = atol(words[2]); 0 < ticks; ticks--) {
    struct timespec now, pause = {millis / 1000, millis % 1000 * 1000000};
    clock_gettime(CLOCK_BOOTTIME, &now);
    char line[128];
    int length =
        snprintf(line, sizeof line, "%s %lld %s\n", fence, now.tv_sec * 1000000000LL + now.tv_nsec, run);
    if (write(file, line, length) != length) return 98;
    nanosleep(&pause, NULL);
  }
  return 0;
}
