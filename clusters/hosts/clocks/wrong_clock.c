/* A wall clock that is wrong on purpose, for the one process that preloads this library.
 *
 * FENCEPOST_CLOCK names a file that holds `struct control`. Whoever writes it changes the time that
 * the process is told, from its next look on. Only CLOCK_REALTIME is touched: what waits and times
 * out by the kernel's monotonic clock goes on as it does.
 *
 * No libc is linked and no memory allocated: the looks come from any thread and any signal handler.
 * `python -m fencepost.clusters.hosts.clocks.library` builds the library that lies beside this file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* How wrong it is `passed_ns` after `since_ns`, both by the right clock:
 * ahead_ns + passed_ns * gain_ppm / 10^6, and strobe_ns more in every second span of every_ns. */
struct wrong {
    int64_t since_ns, ahead_ns, gain_ppm, strobe_ns, every_ns;
};

/* The slot that `in_force` names is read; the other one may be written. */
struct control {
    int64_t in_force;
    struct wrong slots[2];
};

static const volatile struct control *control;
static int (*right_clock_gettime)(clockid_t, struct timespec *);

static int64_t ahead_ns(int64_t now_ns)
{
    if (!control)
        return 0;
    const volatile struct wrong *wrong = &control->slots[control->in_force & 1];
    int64_t passed_ns = now_ns - wrong->since_ns;
    int64_t ahead = wrong->ahead_ns + passed_ns / 1000 * wrong->gain_ppm / 1000;
    if (wrong->every_ns > 0 && passed_ns / wrong->every_ns % 2 != 0)
        ahead += wrong->strobe_ns;
    return ahead;
}

int clock_gettime(clockid_t id, struct timespec *at)
{
    int failed = right_clock_gettime ? right_clock_gettime(id, at)
                                     : (int)syscall(SYS_clock_gettime, id, at);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t now_ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec;
        now_ns += ahead_ns(now_ns);
        at->tv_sec = now_ns / 1000000000;
        at->tv_nsec = now_ns % 1000000000;
    }
    return failed;
}

/* Older releases of Java look at the time by this. */
int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FENCEPOST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(0, sizeof *control, PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            control = mapped;
        close(file);
    }
    right_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}
