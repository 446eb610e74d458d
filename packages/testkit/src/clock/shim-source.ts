// The C source of the library that moves a server's wall clock: it is loaded before libc and adds an offset, read from a shared file, to CLOCK_REALTIME.
// It must not touch the monotonic clocks: a machine whose wall clock is set back does not live through the time again.

export const shimSource = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static volatile int64_t *offset_ms;

__attribute__((constructor)) static void prepare(void) {
  if (real_clock_gettime) return;
  real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("PALISADE_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset_ms = page;
  close(file);
}

int clock_gettime(clockid_t id, struct timespec *out) {
  prepare();
  int failed = real_clock_gettime(id, out);
  if (failed || !offset_ms || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  int64_t by_ms = *offset_ms;
  int64_t ns = out->tv_nsec + (by_ms % 1000) * 1000000;
  out->tv_sec += by_ms / 1000 + (ns < 0 ? -1 : ns >= 1000000000 ? 1 : 0);
  out->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return (time_t)-1;
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
`;
