//! The timerfd in the server's event loop that wakes the timer, where the system has timerfds.

use std::ffi::{c_int, c_void};

pub type OnReadable = unsafe extern "C" fn(c_int, *mut c_void, c_int);

/// What reading the timerfd reports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    InstantHasCome,
    ClockSet,
    Nothing,
}

#[cfg(target_os = "linux")]
pub use linux::{drain, open, set, set_in, watch_clock};

#[cfg(not(target_os = "linux"))]
pub use none::{drain, open, set, set_in, watch_clock};

#[cfg(target_os = "linux")]
mod linux {
    use super::{OnReadable, Wakeup};
    use crate::queue::job::INSTANT_MAX;
    use crate::server::api::function::{api, OK};
    use redis_module::raw;
    use std::ffi::c_int;
    use std::ptr::null_mut;

    /// A timerfd in the server's event loop, or -1.
    pub fn open(on_readable: OnReadable) -> c_int {
        // SAFETY: plain system calls; the event loop keeps the callback, which is static.
        unsafe {
            let add = raw::RedisModule_EventLoopAdd;
            if add.is_none() {
                return -1;
            }
            let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
            let fd = libc::timerfd_create(libc::CLOCK_REALTIME, flags);
            if fd < 0 {
                return -1;
            }
            let readable = raw::REDISMODULE_EVENTLOOP_READABLE as c_int;
            let added = api!(
                RedisModule_EventLoopAdd,
                fd,
                readable,
                Some(on_readable),
                null_mut()
            );
            if added != OK {
                libc::close(fd);
                return -1;
            }
            watch_clock(fd);
            fd
        }
    }

    /// Sets the timerfd to the last of all instants, so that it only reports a clock that is set.
    pub fn watch_clock(fd: c_int) {
        set(fd, INSTANT_MAX);
    }

    /// Sets the timerfd to this unix-ms, by the clock as it is set until then; it also fires at
    /// once when the clock is set. Returns whether the clock was set since the last time, and that
    /// has not been read yet.
    pub fn set(fd: c_int, instant: u64) -> bool {
        let done = set_to(
            fd,
            instant,
            libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET,
        );
        if done < 0 && is(libc::EINVAL) {
            // Not every kernel knows that flag (gVisor's does not).
            set_to(fd, instant, libc::TFD_TIMER_ABSTIME);
            return false;
        }
        done < 0 && is(libc::ECANCELED)
    }

    /// Sets the timerfd to so many ms from now, even if the clock is set.
    pub fn set_in(fd: c_int, ms: u64) {
        set_to(fd, ms, 0);
    }

    fn set_to(fd: c_int, ms: u64, flags: c_int) -> c_int {
        let at = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: (ms / 1000) as _,
                tv_nsec: (ms % 1000 * 1_000_000) as libc::c_long,
            },
        };
        // SAFETY: the descriptor is ours, the struct is complete.
        unsafe { libc::timerfd_settime(fd, flags, &at, null_mut()) }
    }

    pub fn drain(fd: c_int) -> Wakeup {
        let mut count = 0u64;
        // SAFETY: reads eight bytes into eight bytes, without blocking.
        let read = unsafe { libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) };
        match read {
            0.. => Wakeup::InstantHasCome,
            _ if is(libc::ECANCELED) => Wakeup::ClockSet,
            _ => Wakeup::Nothing,
        }
    }

    /// Whether this was the last system call's error.
    fn is(error: c_int) -> bool {
        std::io::Error::last_os_error().raw_os_error() == Some(error)
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use super::{OnReadable, Wakeup};
    use std::ffi::c_int;

    pub fn open(_on_readable: OnReadable) -> c_int {
        -1
    }

    pub fn watch_clock(_fd: c_int) {}

    pub fn set(_fd: c_int, _instant: u64) -> bool {
        false
    }

    pub fn set_in(_fd: c_int, _ms: u64) {}

    pub fn drain(_fd: c_int) -> Wakeup {
        Wakeup::Nothing
    }
}
