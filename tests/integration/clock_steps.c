// Loaded before the C library: a clock that goes back by an hour when the module reads it, once for each file that a test
// puts at DQ_SET_BACK. The file's digit says how often the clock is read before. No system call could set a clock between
// two given lines of a server.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long hours;

// Reads left before the step; negative: no step will come.
static int reads = -1;

// The module's timerfd, whether it must report that the clock was set, and whether it has.
static int timer = -1, tells = 0, told = 1;

static void now(struct timespec *time) {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, time);
    time->tv_sec -= hours * 3600;
}

static void set_back(void) {
    struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
    hours++;
    told = 0;
    if (tells) syscall(SYS_timerfd_settime, timer, 0, &soon, NULL);
}

// Whether the step happens now.
static int comes(void) {
    char digit;
    int file = reads < 0 ? open(getenv("DQ_SET_BACK"), O_RDONLY) : -1;
    if (file >= 0) {
        if (syscall(SYS_read, file, &digit, 1) == 1) {
            reads = digit - '0';
            unlink(getenv("DQ_SET_BACK"));
        }
        close(file);
    }
    return reads >= 0 && reads-- == 0;
}

static int tell(void) {
    told = 1;
    errno = ECANCELED;
    return -1;
}

// On Valkey 9.1 a module's symbols are looked up in its own C library first.
void *dlopen(const char *file, int flags) {
    void *(*next)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return next(file, flags & ~RTLD_DEEPBIND);
}

// The function that servers call.
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
    int before = errno;
    if (comes()) set_back();
    errno = before;
    now(time);
    return 0;
}

int timerfd_create(int clock, int flags) {
    return timer = syscall(SYS_timerfd_create, clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    // Not every kernel has that flag.
    if (getenv("DQ_UNTOLD") && flags & TFD_TIMER_CANCEL_ON_SET) {
        errno = EINVAL;
        return -1;
    }
    if (flags & TFD_TIMER_ABSTIME) real.it_value.tv_sec += hours * 3600;
    // The step is added to `real` already, so a change of the system's clock must not end this.
    int done = syscall(SYS_timerfd_settime, fd, flags & ~TFD_TIMER_CANCEL_ON_SET, &real, before);
    tells = flags & TFD_TIMER_CANCEL_ON_SET;
    return done < 0 || told || !tells ? done : tell();
}

ssize_t read(int fd, void *to, size_t length) {
    ssize_t done = syscall(SYS_read, fd, to, length);
    return done < 0 || told || fd != timer || !tells ? done : tell();
}
