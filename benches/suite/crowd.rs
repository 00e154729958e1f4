//! Many clients at once, each with a pipeline of its own, driven by one thread.

use super::host::Host;
use super::wire::Connection;

/// As many as the figures in the table were measured with.
const CLIENTS: usize = 50;

pub struct Crowd {
    clients: Vec<Connection>,
}

impl Crowd {
    pub fn of(host: &Host) -> Crowd {
        Crowd {
            clients: (0..CLIENTS).map(|_| host.connect()).collect(),
        }
    }

    /// One, which waits for each of its pipelines: so the server takes as many turns each time.
    pub fn of_one(host: &Host) -> Crowd {
        Crowd {
            clients: vec![host.connect()],
        }
    }

    /// Has commands `first` to `end` carried out, `pipeline` of them on the way for each client, and
    /// waits for all replies. `write` appends the command of a number.
    pub fn run(
        &mut self,
        (first, end): (usize, usize),
        pipeline: usize,
        mut write: impl FnMut(&mut Vec<u8>, usize),
    ) {
        let mut waiting_for = vec![0; self.clients.len()];
        let mut batch = Vec::new();
        let starts = (first..end).step_by(pipeline);
        for (start, turn) in starts.zip((0..self.clients.len()).cycle()) {
            let client = &mut self.clients[turn];
            client.receive_done(std::mem::take(&mut waiting_for[turn]));
            batch.clear();
            let numbers = start..end.min(start + pipeline);
            waiting_for[turn] = numbers.len();
            numbers.for_each(|number| write(&mut batch, number));
            client.send(&batch);
        }
        for (client, count) in self.clients.iter_mut().zip(waiting_for) {
            client.receive_done(count);
        }
    }
}
