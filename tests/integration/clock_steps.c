// Loaded before the C library: a clock that goes an hour back at the moment at which the module reads it, once for
// each file that a test puts at DQ_SET_BACK. No system call sets a clock between two lines of a server.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long hours;

// The module's timerfd, and whether it has told that the clock was set.
static int timer = -1, told = 1;

static void now(struct timespec *time) {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, time);
    time->tv_sec -= hours * 3600;
}

static void set_back(void) {
    struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
    hours++;
    told = 0;
    if (timer >= 0) syscall(SYS_timerfd_settime, timer, 0, &soon, NULL);
}

static int tell(void) {
    told = 1;
    errno = ECANCELED;
    return -1;
}

// Valkey 9.1 has a module find its own C library first.
void *dlopen(const char *file, int flags) {
    void *(*next)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return next(file, flags & ~RTLD_DEEPBIND);
}

// Servers ask this one.
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec read;
    (void)zone;
    now(&read);
    time->tv_sec = read.tv_sec;
    time->tv_usec = read.tv_nsec / 1000;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_REALTIME) return syscall(SYS_clock_gettime, clock, time);
    if (unlink(getenv("DQ_SET_BACK")) == 0) set_back();
    now(time);
    return 0;
}

int timerfd_create(int clock, int flags) {
    return timer = syscall(SYS_timerfd_create, clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    if (flags & TFD_TIMER_ABSTIME) real.it_value.tv_sec += hours * 3600;
    // What the clock was set by is in `real`, so no setting of the system's is to end this.
    int done = syscall(SYS_timerfd_settime, fd, flags & ~TFD_TIMER_CANCEL_ON_SET, &real, before);
    return done < 0 || told || !(flags & TFD_TIMER_CANCEL_ON_SET) ? done : tell();
}

ssize_t read(int fd, void *to, size_t length) {
    ssize_t done = syscall(SYS_read, fd, to, length);
    return done < 0 || told || fd != timer ? done : tell();
}
