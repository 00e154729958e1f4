// Loaded before the C library: the clock of one server, which a test sets through the file at DQ_CLOCK. What a kernel does
// to a timer of its when somebody sets the clock happens to the module's, so no test needs a machine of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const int64_t BILLION = 1000000000;

// The file: how far this clock is ahead, and after how many reads of the module it goes back by an hour, as no test could
// set it between two given lines of a server; negative: never.
static volatile struct {
    int64_t ahead_ms, reads;
} *clock_file;

// The module's timerfd, and what it was set to by this clock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int timer = -1, tells = 0, told = 1;
static struct itimerspec set_to;
static int64_t seen_ms;

static void now(struct timespec *time) {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, time);
    int64_t ns = time->tv_sec * BILLION + time->tv_nsec + clock_file->ahead_ms * 1000000;
    time->tv_sec = ns / BILLION;
    time->tv_nsec = ns % BILLION;
}

// Sets the timer to an instant of this clock.
static int arm(int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    if (flags & TFD_TIMER_ABSTIME && (at->it_value.tv_sec || at->it_value.tv_nsec)) {
        int64_t ns = at->it_value.tv_sec * BILLION + at->it_value.tv_nsec - clock_file->ahead_ms * 1000000;
        if (ns < 1) ns = 1;
        real.it_value.tv_sec = ns / BILLION;
        real.it_value.tv_nsec = ns % BILLION;
    }
    return syscall(SYS_timerfd_settime, timer, flags & ~TFD_TIMER_CANCEL_ON_SET, &real, before);
}

// As the kernel at a step: a timer that asked for it is told, each other one keeps its instant.
static void follow(void) {
    struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
    pthread_mutex_lock(&lock);
    if (seen_ms != clock_file->ahead_ms && timer >= 0) {
        told = !tells;
        if (tells) syscall(SYS_timerfd_settime, timer, 0, &soon, NULL);
        else arm(TFD_TIMER_ABSTIME, &set_to, NULL);
    }
    seen_ms = clock_file->ahead_ms;
    pthread_mutex_unlock(&lock);
}

static void *watch(void *nothing) {
    for (;; usleep(1000)) follow();
    return nothing;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    int file = open(getenv("DQ_CLOCK"), O_RDWR);
    clock_file = mmap(NULL, sizeof *clock_file, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (clock_file == MAP_FAILED || pthread_create(&thread, NULL, watch, NULL)) abort();
    close(file);
    seen_ms = clock_file->ahead_ms;
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
    if (clock_file->reads >= 0 && clock_file->reads-- == 0) {
        clock_file->ahead_ms -= 3600000;
        follow();
    }
    now(time);
    return 0;
}

int timerfd_create(int clock, int flags) {
    return timer = syscall(SYS_timerfd_create, clock, flags);
}

static int tell(void) {
    told = 1;
    errno = ECANCELED;
    return -1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    // Not every kernel has that flag.
    if (getenv("DQ_UNTOLD") && flags & TFD_TIMER_CANCEL_ON_SET) {
        errno = EINVAL;
        return -1;
    }
    follow();
    pthread_mutex_lock(&lock);
    set_to = *at;
    tells = flags & TFD_TIMER_CANCEL_ON_SET;
    int done = arm(flags, at, before), canceled = done == 0 && tells && !told;
    pthread_mutex_unlock(&lock);
    return canceled ? tell() : done;
}

ssize_t read(int fd, void *to, size_t length) {
    ssize_t done = syscall(SYS_read, fd, to, length);
    return done < 0 || told || fd != timer || !tells ? done : tell();
}
