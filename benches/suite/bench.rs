//! One server, a crowd of clients, and the scripts: what most subjects are measured with.

use super::crowd::Crowd;
use super::host::Host;
use super::jobs::Scripts;
use super::plan::Plan;
use crate::support::Builder;

/// Commands on the way for each client.
pub const PIPELINE: usize = 64;

pub struct Bench {
    pub plan: Plan,
    pub host: Host,
    pub crowd: Crowd,
    pub scripts: Scripts,
}

impl Bench {
    pub fn start(plan: Plan) -> Bench {
        Bench::start_with(plan, |builder| builder)
    }

    pub fn start_with(plan: Plan, configure: impl FnOnce(Builder) -> Builder) -> Bench {
        let mut host = Host::start_with(configure);
        Bench {
            plan,
            crowd: Crowd::of(&host),
            scripts: Scripts::load(&mut host),
            host,
        }
    }

    /// Server CPU per command, in us, of so many commands, whose replies say that something was done.
    pub fn cost(
        &mut self,
        count: usize,
        pipeline: usize,
        mut write: impl FnMut(&Scripts, &mut Vec<u8>, usize),
    ) -> f64 {
        let (scripts, crowd) = (&self.scripts, &mut self.crowd);
        let before = self.host.main_thread_us();
        crowd.run((0, count), pipeline, |out, number| {
            write(scripts, out, number)
        });
        (self.host.main_thread_us() - before) / count as f64
    }

    pub fn run_scripts(
        &mut self,
        numbers: (usize, usize),
        mut write: impl FnMut(&Scripts, &mut Vec<u8>, usize),
    ) {
        let scripts = &self.scripts;
        self.crowd
            .run(numbers, PIPELINE, |out, number| write(scripts, out, number));
    }

    /// Has commands carried out, not measured.
    pub fn run(&mut self, numbers: (usize, usize), write: impl FnMut(&mut Vec<u8>, usize)) {
        self.crowd.run(numbers, PIPELINE, write);
    }
}
