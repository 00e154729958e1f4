//! dq: the delay queue as a native data type of Redis and Valkey.

pub mod queue;
pub mod slots;
pub mod storage;
pub mod zones;

#[cfg(feature = "module")]
mod commands;
#[cfg(feature = "module")]
mod server;

#[cfg(feature = "module")]
mod module {
    use crate::commands::table;
    use crate::server::allocator::ServerAlloc;
    use crate::server::api::{self, command_info, Ctx};
    use crate::server::datatype::{self, DQ_QUEUE};
    use crate::server::{config, events, info, reclaim, timer, worker};
    use redis_module::configuration::ConfigurationFlags;
    use redis_module::{redis_module, Context, RedisString, Status};

    fn load(context: &Context, args: &[RedisString]) -> Status {
        if !config::are_arguments_sound(args) {
            return Status::Err;
        }
        // SAFETY: the context that the server passed to the load, which is running.
        let ctx = unsafe { Ctx::new(context.ctx) };
        ctx.set_module_options();
        api::log_panics();
        datatype::start();
        let has_test_clock = config::wants_test_clock(args);
        let commands = || table::commands(has_test_clock);
        if !commands().all(|about| command_info::register(ctx, about)) || !events::subscribe(ctx) {
            api::log(
                c"warning",
                "the server refuses a command or an event that the module needs",
            );
            return Status::Err;
        }
        command_info::describe_all(ctx, commands());
        if has_test_clock {
            crate::server::test_clock::start();
        }
        info::register(ctx);
        timer::start(ctx, worker::run);
        reclaim::start();
        worker::role_is(ctx.flags().is_master());
        Status::Ok
    }

    redis_module! {
        name: "dq",
        version: 100,
        allocator: (ServerAlloc, ServerAlloc),
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
