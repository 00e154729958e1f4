//! The next action of an actor.

use redis::{cmd, Cmd, Value};

use crate::actor::{ack_command, bounds, group_of, own_command, Actor, Asked, Gone, Held, QUEUES};
use crate::history::{
    payload, Ack, Add, Claim, Del, Due, Kick, Kind, Nack, Pop, Purge, Reschedule, Set, Taken,
    Touch, What, Which,
};
use crate::link::{bytes, deliveries, number};
use crate::support::Client;

impl Actor {
    pub fn step(&mut self, client: &mut Client) -> Result<(), Gone> {
        match self.rng.below(100) {
            0..=29 => self.add(client),
            30..=47 => self.pop(client),
            48..=55 => self.bpop(client),
            56..=74 => self.ack(client),
            75..=81 => self.nack(client),
            82..=86 => self.touch(client),
            87..=89 => self.reschedule(client),
            90 => self.kick(client),
            91..=92 => self.del(client),
            93 => self.purge(client),
            94 => self.configure(client),
            95..=96 => self.set_group(client),
            _ => self.transaction(client),
        }
    }

    fn a_queue(&mut self) -> &'static str {
        self.rng.pick::<&str>(&QUEUES)
    }

    fn add(&mut self, client: &mut Client) -> Result<(), Gone> {
        let queue = self.a_queue();
        let mut add = self.new_add(queue);
        if queue == "plain" && self.rng.one_in(8) {
            add.id = None;
        }
        let command = self.add_command(queue, &add);
        let asked = self.ask(client, &command)?;
        self.told(queue, &mut add, asked.reply.as_ref());
        self.record(queue, &asked, What::Add(add))?;
        match self.waits && self.rng.one_in(3) {
            true => self.confirm(client),
            false => Ok(()),
        }
    }

    fn add_command(&mut self, queue: &str, add: &Add) -> Cmd {
        let mut command = cmd("DQ.ADD");
        command.arg(queue).arg(add.id.as_deref().unwrap_or("*"));
        command.arg(payload(add.serial));
        match add.due {
            Due::In(0) => {}
            Due::In(ms) => drop(command.arg("DELAY").arg(ms)),
            Due::At(ms) => drop(command.arg("AT").arg(ms)),
        }
        match add.nx {
            true => drop(self.rng.one_in(4).then(|| command.arg("NX"))),
            false => drop(command.arg(["XX", "REPLACE"][self.rng.below(2) as usize])),
        }
        if add.priority != 0 {
            command.arg("PRIORITY").arg(add.priority);
        }
        if let Some(ttr_ms) = self.rng.maybe(2, |rng| 20 + rng.below(280)) {
            command.arg("TTR").arg(ttr_ms);
        }
        if add.max_attempts != 0 {
            command.arg("ATTEMPTS").arg(add.max_attempts);
        }
        if let Some(ttl_ms) = add.ttl_ms {
            command.arg("TTL").arg(ttl_ms);
        }
        if let Some(group) = &add.group {
            command.arg("GROUP").arg(group);
        }
        if add.cost != 1 {
            command.arg("COST").arg(add.cost);
        }
        if !add.backoff.is_empty() {
            command
                .arg("BACKOFF")
                .arg(add.backoff.len())
                .arg(&add.backoff);
        }
        command
    }

    /// Records the answer of an ADD.
    fn told(&mut self, queue: &str, add: &mut Add, reply: Option<&Value>) {
        let id = reply.and_then(bytes);
        add.answer = reply.map(|reply| match reply {
            Value::ServerError(error) if error.details() == Some("group is full") => {
                Taken::GroupFull
            }
            Value::ServerError(_) => Taken::Full,
            Value::Nil => Taken::Refused,
            _ => Taken::Added,
        });
        if let Some(id) = id {
            let id = String::from_utf8(id).expect("an id of text");
            self.know(queue, &id);
            add.id = Some(id);
        }
    }

    fn pop(&mut self, client: &mut Client) -> Result<(), Gone> {
        let queue = self.a_queue();
        let by_id = match self.known.last() {
            Some((of, id)) if of == queue && self.rng.one_in(8) => Some(id.clone()),
            _ => None,
        };
        let (pop, mut options) = self.new_pop(&[queue], by_id.is_some());
        if let Some(id) = by_id {
            options.extend(["ID".to_owned(), id]);
        }
        let asked = self.ask(client, cmd("DQ.POP").arg(queue).arg(options))?;
        self.handed(&asked, pop, Some(queue))
    }

    fn bpop(&mut self, client: &mut Client) -> Result<(), Gone> {
        let queues = match self.rng.below(6) {
            0 => vec![self.a_queue()],
            1 => vec!["limits", "plain"],
            2 => vec!["bounded", "purged"],
            3 => vec!["fair", "fifo"],
            4 => vec!["metered", "plain"],
            _ => vec!["plain", "shared", "limits"],
        };
        let (pop, options) = self.new_pop(&queues, false);
        let timeout = (1 + self.rng.below(40)) as f64 / 1000.0;
        let mut command = cmd("DQ.BPOP");
        command.arg(&queues).arg(timeout).arg(options);
        let asked = self.ask(client, &command)?;
        self.handed(&asked, pop, None)
    }

    /// A POP with the options that both POP and BPOP have.
    fn new_pop(&mut self, queues: &[&str], by_id: bool) -> (Pop, Vec<String>) {
        let mut options = Vec::new();
        let count = match by_id {
            true => None,
            false => self.rng.maybe(3, |rng| 1 + rng.below(6)),
        };
        if let Some(count) = count {
            options.extend(["COUNT".to_owned(), count.to_string()]);
        }
        if let Some(ttr_ms) = self.rng.maybe(3, |rng| 15 + rng.below(200)) {
            options.extend(["TTR".to_owned(), ttr_ms.to_string()]);
        }
        let noack = match queues {
            ["taken"] => self.rng.one_in(2),
            ["bounded"] => self.rng.one_in(6),
            _ => false,
        };
        if noack {
            options.push("NOACK".to_owned());
        }
        let pop = Pop {
            queues: queues.iter().map(|&queue| queue.to_owned()).collect(),
            count: count.unwrap_or(1),
            noack,
            by_id,
            answer: None,
        };
        (pop, options)
    }

    fn handed(&mut self, asked: &Asked, mut pop: Pop, queue: Option<&str>) -> Result<(), Gone> {
        pop.answer = asked.reply.as_ref().map(|reply| deliveries(reply, queue));
        self.keep(pop.answer.as_deref().unwrap_or_default());
        let queue = pop.queues[0].clone();
        self.record(&queue, asked, What::Pop(pop))
    }

    /// One of the jobs that it holds, with its token or sometimes without.
    fn one_held(&mut self, lets_go: bool) -> Option<Held> {
        if self.held.is_empty() {
            return None;
        }
        let at = self.rng.below(self.held.len() as u64) as usize;
        // Sometimes it remembers the job, to come again with a token that is no longer valid.
        let mut held = match lets_go && !self.rng.one_in(8) {
            true => self.held.swap_remove(at),
            false => self.held[at].clone(),
        };
        if self.rng.one_in(5) {
            held.claim.token = None;
        }
        Some(held)
    }

    fn ack(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some(first) = self.one_held(true) else {
            return Ok(());
        };
        let mut claims = vec![first.claim.clone()];
        if self.rng.one_in(4) {
            // More claims of the same queue and form, each id once.
            let with_token = first.claim.token.is_some();
            let fits = |held: &&Held| held.queue == first.queue && held.claim.id != first.claim.id;
            let more = self.held.iter().rev().find(fits);
            claims.extend(more.map(|held| Claim {
                id: held.claim.id.clone(),
                token: held.claim.token.filter(|_| with_token),
            }));
        }
        let asked = self.ask(client, &ack_command(&first.queue, &claims))?;
        let ack = Ack {
            claims,
            answer: asked.reply.as_ref().map(number),
        };
        self.record(&first.queue, &asked, What::Ack(ack))
    }

    fn nack(&mut self, client: &mut Client) -> Result<(), Gone> {
        if self.rng.one_in(4) {
            return self.nack_many(client);
        }
        let Some(held) = self.one_held(true) else {
            return Ok(());
        };
        let kind = match self.rng.below(8) {
            0 => Kind::Fatal,
            1 | 2 => Kind::Silent,
            _ => Kind::Fail,
        };
        let delay_ms = self.rng.maybe(2, |rng| rng.below(150));
        let priority = self.rng.maybe(5, |rng| rng.below(5) as i32 - 2);
        let mut command = named("DQ.NACK", &held);
        if let Some(ms) = delay_ms.filter(|_| kind != Kind::Fatal) {
            command.arg("DELAY").arg(ms);
        }
        if let Some(priority) = priority {
            command.arg("PRIORITY").arg(priority);
        }
        match kind {
            Kind::Fail => {}
            Kind::Silent => drop(command.arg("SILENT")),
            Kind::Fatal => drop(command.arg("FATAL")),
        }
        if self.rng.one_in(2) {
            command.arg("REASON").arg("the worker said so");
        }
        let asked = self.ask(client, &command)?;
        let nack = Nack {
            claim: held.claim,
            delay_ms,
            kind,
            answer: asked.reply.as_ref().map(|reply| *reply != Value::Nil),
        };
        self.record(&held.queue, &asked, What::Nack(nack))
    }

    fn touch(&mut self, client: &mut Client) -> Result<(), Gone> {
        if self.rng.one_in(3) {
            return self.touch_many(client);
        }
        let Some(held) = self.one_held(false) else {
            return Ok(());
        };
        let mut command = named("DQ.TOUCH", &held);
        let ttr_ms = self.rng.maybe(2, |rng| 10 + rng.below(200));
        if let Some(ms) = ttr_ms {
            command.arg("TTR").arg(ms);
        }
        let cost = self.rng.maybe(3, |rng| 1 + rng.below(12) as u32);
        if let Some(cost) = cost {
            command.arg("COST").arg(cost);
        }
        let asked = self.ask(client, &command)?;
        let deadline = |reply: &Value| (*reply != Value::Nil).then(|| number(reply));
        let touch = Touch {
            claim: held.claim,
            ttr_ms,
            cost,
            answer: asked.reply.as_ref().map(deadline),
        };
        self.record(&held.queue, &asked, What::Touch(touch))
    }

    /// A queue, and one or two of its jobs.
    fn some_known(&mut self) -> Option<(String, Vec<String>)> {
        if self.known.is_empty() {
            return None;
        }
        let (queue, id) = self.rng.pick(&self.known).clone();
        let mut ids = vec![id];
        let second = self.rng.pick(&self.known).clone();
        if self.rng.one_in(4) && second.0 == queue && second.1 != ids[0] {
            ids.push(second.1);
        }
        Some((queue, ids))
    }

    fn reschedule(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some((queue, ids)) = self.some_known() else {
            return Ok(());
        };
        let mut command = cmd("DQ.RESCHEDULE");
        let due = match self.rng.one_in(2) {
            true => Due::In(self.rng.below(200)),
            false => Due::At(self.clock.stamp().wall_ms() + self.rng.below(200)),
        };
        match due {
            Due::In(ms) => command.arg(&queue).arg("DELAY").arg(ms),
            Due::At(ms) => command.arg(&queue).arg("AT").arg(ms),
        };
        let asked = self.ask(client, command.arg(&ids))?;
        let answer = asked.reply.as_ref().map(number);
        let what = What::Reschedule(Reschedule { due, ids, answer });
        self.record(&queue, &asked, what)
    }

    fn kick(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some((queue, ids)) = self.some_known() else {
            return Ok(());
        };
        let mut command = cmd("DQ.KICK");
        command.arg(&queue);
        let ids = (!self.rng.one_in(3)).then_some(ids);
        match &ids {
            Some(ids) => command.arg("IDS").arg(ids.len()).arg(ids),
            None => command.arg("COUNT").arg(2),
        };
        let asked = self.ask(client, &command)?;
        let answer = asked.reply.as_ref().map(number);
        self.record(&queue, &asked, What::Kick(Kick { ids, answer }))
    }

    fn del(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some((queue, ids)) = self.some_known() else {
            return Ok(());
        };
        let mut command = cmd("DQ.DEL");
        command.arg(&queue);
        let spares = self.rng.one_in(3);
        if spares {
            command.arg("UNRESERVED");
        }
        let asked = self.ask(client, command.arg(&ids))?;
        let answer = asked.reply.as_ref().map(number);
        self.record(
            &queue,
            &asked,
            What::Del(Del {
                ids,
                spares,
                answer,
            }),
        )
    }

    fn purge(&mut self, client: &mut Client) -> Result<(), Gone> {
        let (which, word) = *self.rng.pick(&[
            (Which::Delayed, "DELAYED"),
            (Which::Ready, "READY"),
            (Which::Reserved, "RESERVED"),
            (Which::Dead, "DEAD"),
            (Which::All, "ALL"),
        ]);
        let queue = "purged";
        let asked = self.ask(client, cmd("DQ.PURGE").arg(queue).arg(word))?;
        let answer = asked.reply.as_ref().map(number);
        self.record(queue, &asked, What::Purge(Purge { which, answer }))
    }

    /// Not recorded in the history: the rules are the same under all limits.
    fn configure(&mut self, client: &mut Client) -> Result<(), Gone> {
        let number = self.rng.below(300);
        let line = match self.rng.below(12) {
            0 => format!("DQ.CFGSET limits MAXRESERVED {}", number % 12),
            1 => format!("DQ.CFGSET limits RATE {} 20", 5 + number),
            2 => "DQ.CFGSET limits RATE 0 0 MAXRESERVED 0".to_owned(),
            3 => format!("DQ.CFGSET plain TTR {}", 30 + number),
            4 => format!("DQ.CFGSET limits GROUPMAX {}", number % 4),
            5 => format!("DQ.CFGSET limits GROUPRATE {} 20", 1 + number % 20),
            6 => "DQ.CFGSET limits GROUPRATE 0 0 GROUPMAX 0".to_owned(),
            7 => format!("DQ.GROUPSET limits g1 MAX {} WEIGHT 5", number % 4),
            8 => format!("DQ.GROUPSET limits g2 RATE {} 20 MAXLEN 0", 1 + number % 20),
            9 => "DQ.GROUPSET limits g1 CLEAR".to_owned(),
            10 => format!("DQ.PAUSE limits {} GROUP g2", 1 + number / 10),
            _ => format!("DQ.PAUSE limits {}", 1 + number / 10),
        };
        let mut words = line.split(' ');
        let mut command = cmd(words.next().unwrap_or_default());
        for word in words {
            command.arg(word);
        }
        let asked = self.ask(client, &command)?;
        asked.reply.map(|_| ()).ok_or(Gone)
    }

    /// Sometimes what a group has already, which changes nothing; else what nobody has said before.
    fn set_group(&mut self, client: &mut Client) -> Result<(), Gone> {
        if self.rng.one_in(3) {
            let queue = *self.rng.pick(&["bounded", "purged", "metered", "fair"]);
            let own = bounds()[queue].own;
            let asked = self.ask(client, &own_command(queue, own))?;
            return asked.reply.map(|_| ()).ok_or(Gone);
        }
        self.serials += 1;
        let (group, value) = (group_of(self.number), self.serials);
        let mut command = cmd("DQ.GROUPSET");
        command.arg("limits").arg(&group).arg("MAXLEN").arg(value);
        let asked = self.ask(client, command.arg("RATE").arg(value).arg(value))?;
        let answer = asked.reply.as_ref().map(|_| ());
        let set = Set {
            group,
            value,
            answer,
        };
        self.record("limits", &asked, What::Set(set))
    }

    /// Two ADDs and a POP in one transaction: all of it or nothing.
    fn transaction(&mut self, client: &mut Client) -> Result<(), Gone> {
        // These ADDs are never refused, so each shows whether its transaction was carried out.
        let queue = *self
            .rng
            .pick(&["plain", "limits", "purged", "fair", "fifo", "metered"]);
        let mut adds = [self.new_add(queue), self.new_add(queue)];
        let (mut pop, options) = self.new_pop(&[queue], false);
        let mut commands: Vec<Cmd> = vec![cmd("MULTI")];
        commands.extend(adds.iter().map(|add| self.add_command(queue, add)));
        commands.push(cmd("DQ.POP").arg(queue).arg(options).clone());
        for command in &commands {
            // Without EXEC nothing is carried out.
            self.ask(client, command)?.reply.ok_or(Gone)?;
        }
        let asked = self.ask(client, &cmd("EXEC"))?;
        let replies: &[Value] = match &asked.reply {
            Some(Value::Array(replies)) => replies,
            Some(other) => panic!("EXEC -> {other:?}"),
            None => &[],
        };
        self.units += 1;
        let unit = Some(((self.number as u64 + 1) << 32) | self.units);
        for (at, add) in adds.iter_mut().enumerate() {
            self.told(queue, add, replies.get(at));
        }
        pop.answer = replies.get(2).map(|reply| deliveries(reply, Some(queue)));
        self.keep(pop.answer.as_deref().unwrap_or_default());
        for add in adds {
            self.record_in(unit, queue, &asked, What::Add(add));
        }
        self.record_in(unit, queue, &asked, What::Pop(pop));
        asked.reply.map(|_| ()).ok_or(Gone)
    }
}

fn named(command: &str, held: &Held) -> Cmd {
    let mut command = cmd(command);
    command.arg(&held.queue).arg(&held.claim.id);
    if let Some(token) = held.claim.token {
        command.arg("TOKEN").arg(token);
    }
    command
}
