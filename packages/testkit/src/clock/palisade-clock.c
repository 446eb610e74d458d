// Moves the wall clock of a server: loaded before libc, it adds an offset, read from a shared file, to
// CLOCK_REALTIME. The monotonic clocks stay as they are: a machine whose wall clock is set back does
// not live through the time again. It includes no header and links nothing, so that a compiler
// without the C library's development files is enough (64-bit Linux).
typedef long time_t;
struct timespec { time_t tv_sec; long tv_nsec; };
struct timeval { time_t tv_sec; long tv_usec; };
enum { CLOCK_REALTIME = 0, CLOCK_REALTIME_COARSE = 5, O_RDONLY = 0, O_CLOEXEC = 02000000, PROT_READ = 1, MAP_SHARED = 1 };
#define RTLD_NEXT ((void *)-1L)
#define MAP_FAILED ((void *)-1L)
typedef char only_for_64_bits[sizeof(time_t) == 8 ? 1 : -1];

extern void *dlsym(void *library, const char *name);
extern char *getenv(const char *name);
extern int open(const char *path, int flags, ...);
extern int close(int file);
extern void *mmap(void *at, unsigned long length, int protection, int flags, int file, long offset);

static int (*real_clock_gettime)(int, struct timespec *);
static volatile long *offset_ms;

static void prepare(void) {
  if (real_clock_gettime) return;
  real_clock_gettime = (int (*)(int, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("PALISADE_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap((void *)0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset_ms = page;
  close(file);
}

int clock_gettime(int id, struct timespec *out) {
  prepare();
  int failed = real_clock_gettime(id, out);
  if (failed || !offset_ms || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  long by_ms = *offset_ms;
  long ns = out->tv_nsec + (by_ms % 1000) * 1000000;
  out->tv_sec += by_ms / 1000 + (ns < 0 ? -1 : ns >= 1000000000 ? 1 : 0);
  out->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *out, void *zone) {
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
