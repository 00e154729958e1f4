//! Cores, clocks and limits of the machine.

use std::mem::{size_of, zeroed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The cores on which the client and the servers run: the first and the last one that this process
/// may use, or none where there is but one.
#[derive(Clone, Copy)]
pub struct Cores {
    pub client: usize,
    pub server: usize,
}

impl Cores {
    pub fn find() -> Option<Cores> {
        // SAFETY: the set is plain bits, and its size is told.
        let allowed = unsafe {
            let mut set: libc::cpu_set_t = zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            set
        };
        // SAFETY: the index stays below the set's size.
        let is_allowed = |core: &usize| unsafe { libc::CPU_ISSET(*core, &allowed) };
        let mut cores = (0..libc::CPU_SETSIZE as usize).filter(is_allowed);
        let client = cores.next()?;
        let server = cores.next_back()?;
        Some(Cores { client, server })
    }
}

/// Binds the calling thread, and what it starts from now on, to one core.
pub fn pin(core: usize) {
    // SAFETY: as in `Cores::find`.
    let result = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    assert_eq!(result, 0, "core {core} can be used");
}

/// Unix time in nanoseconds.
pub fn now_ns() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.expect("a clock past 1970").as_nanos() as u64
}

pub fn now_ms() -> u64 {
    now_ns() / 1_000_000
}

/// Microseconds from that instant (unix-ms) to now.
pub fn us_since(instant_ms: u64) -> f64 {
    (now_ns() as f64 - instant_ms as f64 * 1e6) / 1e3
}

pub fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Sleeps until an instant of unix time, as precisely as the system lets a process.
pub fn sleep_until_ns(instant: u64) {
    let at = timespec(instant);
    let (clock, absolute) = (libc::CLOCK_REALTIME, libc::TIMER_ABSTIME);
    // SAFETY: the struct is complete, and nothing is written back for an absolute instant.
    while unsafe { libc::clock_nanosleep(clock, absolute, &at, std::ptr::null_mut()) } != 0 {}
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// How much later than asked the system may wake the calling thread; 50 us if nobody says otherwise.
pub fn set_timer_slack_ns(ns: u64) {
    // SAFETY: takes a plain number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns as libc::c_ulong) };
}

/// The CPU time that a process has used, all its threads together, to the nanosecond.
#[derive(Clone, Copy)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    pub fn of(pid: u32) -> CpuClock {
        let mut clock = 0;
        // SAFETY: writes the number of a clock.
        let result = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
        assert_eq!(result, 0, "process {pid} has a clock");
        CpuClock(clock)
    }

    pub fn us(self) -> f64 {
        let mut time = timespec(0);
        // SAFETY: writes one timespec.
        let result = unsafe { libc::clock_gettime(self.0, &mut time) };
        assert_eq!(result, 0, "the process is alive");
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    }

    pub fn us_during(self, work: impl FnOnce()) -> f64 {
        let before = self.us();
        work();
        self.us() - before
    }
}

/// Raises the number of files that this process and its servers may open as far as it goes.
pub fn raise_open_files() -> usize {
    // SAFETY: reads and writes one struct.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        limit.rlim_max as usize
    }
}

/// `AMD EPYC, 2 cores, Linux 6.1.0, load 0.05 when it began`
pub fn description() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    // What a builder appends to the version names a machine, not what it does.
    let kernel = kernel.trim().split('-').next().unwrap_or_default();
    format!("{model}, {cores} cores, Linux {kernel}, load {load} when it began")
}
