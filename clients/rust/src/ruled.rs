//! Rules beside handlers, which a worker says when it starts, as each other one does.

use crate::core::trouble::trouble_wait;
use crate::error::Error;
use crate::guard::log;
use crate::handler::Handler;
use crate::queue::Queue;
use crate::server::Server;
use redis::Cmd;
use std::sync::Arc;

/// The commands that add the jobs.
pub(crate) struct Ruled {
    server: Server,
    commands: Vec<(Arc<[u8]>, Cmd)>,
}

impl Ruled {
    /// For the first queue of a worker.
    pub fn of(queue: &Queue, handlers: &[Handler]) -> Result<Self, Error> {
        let rules = handlers.iter().filter_map(|handler| {
            let rule = handler.rule.clone()?;
            Some(queue.beside(rule, handler.shape.kind.as_deref()))
        });
        Ok(Ruled {
            server: queue.server().clone(),
            commands: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Says them as soon as the server takes them, by connections of the current runtime. The error says which rule it
    /// refuses: that would be missed at night.
    pub async fn say(self) -> Result<(), Error> {
        let server = self.server.anew();
        for (key, command) in &self.commands {
            let mut troubles = 0;
            loop {
                let said = match server.ask(key, command).await {
                    Ok(_) => break,
                    Err(Error::QueueFull(said) | Error::Refused(said)) => Some(said),
                    Err(Error::Connection(_)) => None, // the links say what is wrong
                    Err(error) => return Err(error),
                };
                let code = said.as_ref().map_or("", |said| &*said.code);
                let error = said.as_ref().map(ToString::to_string).unwrap_or_default();
                match code {
                    "NOPERM" => {
                        log!(
                            warn,
                            error,
                            "DQ.ADD is refused: the rules of handlers are not said"
                        );
                        return Ok(());
                    }
                    "MAXLEN" | "MAXBYTES" | "OOM" => {
                        log!(error, error, "a rule is not said until the next start");
                        break;
                    }
                    "ERR" if error.contains("UNTIL is before the first occurrence") => {
                        log!(info, error, "a rule is over");
                        break;
                    }
                    "ERR" => return Err(Error::usage(error)),
                    _ => {}
                }
                troubles += 1;
                tokio::time::sleep(trouble_wait(troubles, 0.0)).await;
            }
        }
        Ok(())
    }
}
