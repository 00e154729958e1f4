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
    use crate::server::api::{self, command_info, Ctx};
    use crate::server::{
        client_eviction, config, datatype, events, info, load, reclaim, timer, worker,
    };
    use redis_module::raw;
    use std::ffi::c_int;

    /// # Safety
    /// The server calls it, once for each load.
    #[no_mangle]
    #[allow(non_snake_case, reason = "the name that the server looks for")]
    pub unsafe extern "C" fn RedisModule_OnLoad(
        ctx: *mut raw::RedisModuleCtx,
        argv: *mut *mut raw::RedisModuleString,
        argc: c_int,
    ) -> c_int {
        // SAFETY: the arguments are the server's own.
        unsafe { load::on_load(ctx, argv, argc, start) }
    }

    fn start(ctx: Ctx<'_>, args: &[config::Argument]) -> bool {
        if !config::are_arguments_sound(args) || !datatype::register(ctx) {
            return false;
        }
        config::register(ctx, args);
        ctx.set_module_options();
        api::log_panics();
        let has_test_clock = config::wants_test_clock(args);
        let commands = || table::commands(has_test_clock);
        if !commands().all(|about| command_info::register(ctx, about)) || !events::subscribe(ctx) {
            api::log(
                c"warning",
                "the server refuses a command or an event that the module needs",
            );
            return false;
        }
        command_info::describe_all(ctx, commands());
        if has_test_clock {
            crate::server::test_clock::start();
        }
        info::register(ctx);
        timer::start(ctx, worker::run);
        reclaim::start();
        worker::role_is(ctx.flags().is_master());
        client_eviction::warn(ctx);
        true
    }
}
