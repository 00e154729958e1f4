//! dq: the delay queue as a native data type of Redis and Valkey.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod queue;
pub mod slots;
pub mod storage;

#[cfg(feature = "module")]
mod commands;
#[cfg(feature = "module")]
mod server;

#[cfg(feature = "module")]
mod module {
    use crate::commands::{
        ack, add, apply, bpop, configure, del, docs, forecast, get, kick, len, nack, peek, pop,
        purge, reschedule, scan, stats, test_clock, touch,
    };
    use crate::server::ffi::{entry, Ctx, Entry};
    use crate::server::value::DQ_QUEUE;
    use crate::server::{attention, command_info, config, events, ffi, graveyard, info, timer};
    use redis_module::configuration::ConfigurationFlags;
    use redis_module::{redis_module, Context, RedisString, Status};
    use std::ffi::CStr;

    /// Name, entry, flags.
    const COMMANDS: [(&CStr, Entry, &CStr); 21] = [
        (c"dq.add", entry!(add::run), c"write deny-oom fast"),
        (c"dq.pop", entry!(pop::run), c"write fast"),
        (c"dq.bpop", entry!(bpop::run), c"write blocking"),
        (c"dq.ack", entry!(ack::run), c"write fast"),
        (c"dq.del", entry!(del::run), c"write fast"),
        (c"dq.nack", entry!(nack::run), c"write fast"),
        (c"dq.touch", entry!(touch::run), c"write fast"),
        (c"dq.reschedule", entry!(reschedule::run), c"write fast"),
        (c"dq.kick", entry!(kick::run), c"write"),
        (c"dq.purge", entry!(purge::run), c"write"),
        (c"dq.get", entry!(get::run), c"readonly fast"),
        (c"dq.peek", entry!(peek::run), c"readonly"),
        (c"dq.forecast", entry!(forecast::run), c"readonly"),
        (c"dq.scan", entry!(scan::run), c"readonly"),
        (c"dq.len", entry!(len::run), c"readonly fast"),
        (c"dq.stats", entry!(stats::run), c"readonly fast"),
        (c"dq.cfgset", entry!(configure::set), c"write deny-oom fast"),
        (c"dq.cfgget", entry!(configure::get), c"readonly fast"),
        (
            c"dq.pause",
            entry!(configure::pause),
            c"write deny-oom fast",
        ),
        (c"dq.resume", entry!(configure::resume), c"write fast"),
        (c"dq.apply", entry!(apply::run), c"write admin"),
    ];

    /// With `test-clock yes` only.
    const TEST_CLOCK: (&CStr, Entry, &CStr) =
        (c"dq.clock", entry!(test_clock::run), c"admin deny-script");

    fn load(context: &Context, args: &[RedisString]) -> Status {
        if !config::are_arguments_sound(args) {
            return Status::Err;
        }
        // SAFETY: the context that the server passed to the load, which is running.
        let ctx = unsafe { Ctx::new(context.ctx) };
        ctx.set_module_options();
        let registered = COMMANDS
            .iter()
            .all(|&(name, entry, flags)| ctx.create_command(name, entry, flags));
        let has_test_clock = config::wants_test_clock(args);
        let (name, entry, flags) = TEST_CLOCK;
        let has_clock = !has_test_clock || ctx.create_keyless_command(name, entry, flags);
        if !registered || !has_clock || !events::subscribe(ctx) {
            ffi::log(c"warning", "the server refuses what the module needs");
            return Status::Err;
        }
        command_info::describe_all(ctx, &docs::COMMANDS);
        if has_test_clock {
            command_info::describe_all(ctx, &docs::TEST_CLOCK);
            crate::server::test_clock::start();
        }
        info::register(ctx);
        timer::start(ctx);
        graveyard::start();
        attention::role_is(ctx.flags().is_master());
        Status::Ok
    }

    redis_module! {
        name: "dq",
        version: 100,
        allocator: (redis_module::alloc::RedisAlloc, redis_module::alloc::RedisAlloc),
        data_types: [DQ_QUEUE],
        init: load,
        commands: [],
        configurations: [
            i64: [
                ["timer-steps", &*config::TIMER_STEPS_SETTING, config::TIMER_STEPS.0,
                    config::TIMER_STEPS.1, config::TIMER_STEPS.2, ConfigurationFlags::DEFAULT, None],
                ["default-ttr", &*config::DEFAULT_TTR_SETTING, config::DEFAULT_TTR.0,
                    config::DEFAULT_TTR.1, config::DEFAULT_TTR.2, ConfigurationFlags::DEFAULT, None],
            ],
            string: [],
            bool: [],
            enum: [],
            module_args_as_configuration: true,
        ]
    }
}
