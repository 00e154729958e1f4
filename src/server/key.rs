//! A queue's key: open, create, finish, drop.

use super::api::{api, caught, log_bug, shown, Ctx, KeyName, Refusal, OK, WRONG_TYPE};
use super::awaits::{self, Found};
use super::blocked::Kinds;
use super::queue_value::{data_type, Value};
use super::{agenda, blocked, clock, reclaim, replicate, timer};
use crate::queue::clock::Now;
use crate::queue::effect::Effect;
use crate::queue::effects::Effects;
use crate::queue::Queue;
use redis_module::raw;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;

const EMPTY: c_int = raw::REDISMODULE_KEYTYPE_EMPTY as c_int;

/// A key opened for writing, which holds a queue or nothing. Closed when dropped.
pub struct OpenKey<'a> {
    ctx: Ctx<'a>,
    name: KeyName<'a>,
    key: *mut raw::RedisModuleKey,
    value: Option<NonNull<Value>>,
}

impl<'a> OpenKey<'a> {
    pub fn open(ctx: Ctx<'a>, name: KeyName<'a>) -> Result<Self, Refusal> {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        Self::open_as(ctx, name, mode)
    }

    /// Opens the key for reading, without touching its access time.
    pub fn peek(ctx: Ctx<'a>, name: KeyName<'a>) -> Result<Self, Refusal> {
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_OPEN_KEY_NOTOUCH;
        Self::open_as(ctx, name, mode as c_int)
    }

    /// The database, if the name holds a queue. Enters the queue's figures under this name.
    pub fn db_of_queue(ctx: Ctx<'a>, name: KeyName<'a>) -> Option<c_int> {
        let mut open = Self::peek(ctx, name).ok()?;
        let (db, name) = (open.db(), open.name());
        open.value()?.account_as(db, name);
        Some(db)
    }

    fn open_as(ctx: Ctx<'a>, name: KeyName<'a>, mode: c_int) -> Result<Self, Refusal> {
        // SAFETY: `name` is a live string; the key is closed by `drop`.
        let key = unsafe { api!(RedisModule_OpenKey, ctx.raw(), name.raw(), mode) };
        let mut open = OpenKey {
            ctx,
            name,
            key,
            value: None,
        };
        // SAFETY: the key is open; the server treats a null key as an empty one. A value of our
        // type is a `Value` that `create` or a callback of the data type has made.
        unsafe {
            if api!(RedisModule_ModuleTypeGetType, open.key) == data_type() {
                open.value = NonNull::new(api!(RedisModule_ModuleTypeGetValue, open.key).cast());
            } else if api!(RedisModule_KeyType, open.key) != EMPTY {
                return Err(Refusal(WRONG_TYPE.into()));
            }
        }
        Ok(open)
    }

    pub fn name(&self) -> &'a [u8] {
        self.name.bytes()
    }

    pub fn key_name(&self) -> KeyName<'a> {
        self.name
    }

    /// The key's own database. On Valkey 9.1 the selected one differs when MOVE or COPY in a
    /// transaction reports a key that came to the other database.
    pub fn db(&self) -> c_int {
        // SAFETY: a key opened in `open_as`; for a null key, too, the server answers: with -1.
        let db = unsafe { api!(RedisModule_GetDbIdFromModuleKey, self.key) };
        if db < 0 {
            return self.ctx.selected_db();
        }
        db
    }

    /// Which clients wait on the key.
    #[inline]
    fn waiting(&self) -> Kinds {
        match blocked::are_there() {
            true => blocked::kinds(self.db(), self.name()),
            false => Kinds::default(),
        }
    }

    pub fn value(&mut self) -> Option<&mut Value> {
        // SAFETY: the value belongs to the key, which is open and borrowed here; it is the only
        // reference, since keys are opened one at a time.
        self.value.map(|mut value| unsafe { value.as_mut() })
    }

    pub fn queue(&mut self) -> Option<&mut Queue> {
        self.value().map(Value::queue)
    }

    /// Stores this queue in the key, which must be empty. From here on the server owns the queue.
    pub fn create(&mut self, value: Value) -> &mut Value {
        let made = Box::into_raw(Box::new(value));
        // SAFETY: the key is empty and open for writing. From now on the value belongs to the
        // server, which gives it back to `free`.
        let set = unsafe {
            api!(
                RedisModule_ModuleTypeSetValue,
                self.key,
                data_type(),
                made.cast()
            )
        };
        debug_assert_eq!(set, OK);
        // SAFETY: just made, owned by the server, and not freed before the key is.
        let made = unsafe { &mut *made };
        self.value = Some(NonNull::from(&mut *made));
        made
    }

    pub fn delete(&mut self) {
        if self.value.take().is_some() {
            // SAFETY: open for writing; the value is freed by the server.
            unsafe { api!(RedisModule_DeleteKey, self.key) };
        }
    }

    /// Lets the rules change the queue, and finishes in any case. If a broken invariant stops the
    /// rules, what they did before reaches replicas and the AOF, and the panic continues to the
    /// border.
    pub fn change<T>(
        self,
        now: Now,
        effects: &mut Effects,
        change: impl FnOnce(Option<&mut Value>, &mut Effects) -> T,
    ) -> T {
        let mut changing = Changing {
            open: Some(self),
            now,
            effects,
        };
        if awaits::are_there() {
            changing.open.as_mut().into_iter().for_each(OpenKey::listen);
        }
        let value = changing.open.as_mut().and_then(OpenKey::value);
        let result = change(value, changing.effects);
        if let Some(open) = changing.open.take() {
            open.finish(now, changing.effects);
        }
        // Nothing is left to be dropped.
        std::mem::forget(changing);
        result
    }

    /// Called after everything that may have changed the queue: drops an empty one, replicates
    /// effects, answers clients, and makes sure that the timer checks the queue in time.
    // Runs with each command: the database and the name are asked for where they are needed.
    #[inline(always)]
    pub fn finish(self, now: Now, effects: &mut Effects) {
        self.finish_as::<false>(now, effects);
    }

    /// `GONE` says that the queue is over, and never came into the key.
    fn finish_as<const GONE: bool>(mut self, now: Now, effects: &mut Effects) {
        let (ctx, name, waiting) = (self.ctx, self.name, self.waiting());
        let mut dropped = GONE;
        let mut departures = None;
        if let Some(queue) = self.queue() {
            if queue.has_set_aside() {
                departures = queue.take_departures();
                queue.take_garbage().into_iter().for_each(reclaim::add);
            }
            dropped = is_over(queue, waiting);
        }
        if dropped {
            effects.push(&Effect::Dropped);
            self.delete();
        } else {
            self.arm_for(waiting, false, now);
        }
        let departures = departures.map(|it| (self.db(), it));
        drop(self);
        replicate::publish(ctx, name, effects);
        if dropped {
            ctx.notify_generic(c"del", name);
        }
        if let Some((db, departures)) = departures {
            let ready = awaits::note(db, name.bytes(), departures.noted(), now);
            awaits::tell_by_command(ctx, name, &ready);
        }
    }

    /// As [`OpenKey::finish`], after a command has made this queue, for a key that is empty. If its only job has gone to a
    /// waiting client already, the queue never comes into the key.
    pub fn finish_new(mut self, mut value: Value, now: Now, effects: &mut Effects) {
        if is_over(value.queue(), self.waiting()) {
            return self.finish_as::<true>(now, effects);
        }
        self.create(value);
        self.finish(now, effects);
    }

    /// Has the queue record departures, if a client waits for them.
    #[cold]
    #[inline(never)]
    pub fn listen(&mut self) {
        let (db, name) = (self.db(), self.name());
        if !awaits::any(db, name) {
            return;
        }
        self.tell_what_is_there();
        if let Some(queue) = self.queue() {
            let name: Arc<[u8]> = Arc::from(name);
            queue.listen(Box::new(move || awaits::ids_of(db, &name)));
        }
    }

    /// If an earlier command replaced the key, answers waiting clients by what is there now, before
    /// this command changes it. In a transaction or script both commands belong together.
    fn tell_what_is_there(&mut self) {
        let (ctx, db, name) = (self.ctx, self.db(), self.name());
        if !awaits::is_doubtful(db, name) || ctx.flags().denies_blocking() {
            return;
        }
        let found = match self.queue() {
            Some(queue) => Found::Queue(queue),
            None => Found::Nothing,
        };
        awaits::check_by_command(db, name, &found, clock::now());
    }

    /// Passes recorded departures to the clients that wait on the key; the timer replies to them.
    pub fn note_departures(&mut self, now: Now) {
        let (db, name) = (self.db(), self.name());
        if let Some(departures) = self.queue().and_then(Queue::take_departures) {
            if !awaits::note(db, name, departures.noted(), now).is_empty() {
                timer::arm(0);
            }
        }
    }

    /// Sees to the queue's figures, and enters the key on the agenda if it needs attention before its
    /// current entry there.
    pub fn arm(&mut self, now: Now) {
        let waiting = self.waiting();
        let is_over = self.queue().is_some_and(|it| is_over(it, waiting));
        self.arm_for(waiting, is_over, now);
    }

    fn arm_for(&mut self, waiting: Kinds, is_over: bool, now: Now) {
        let Some(mut value) = self.value else {
            return;
        };
        // SAFETY: as in `value`.
        let value = unsafe { value.as_mut() };
        let ticket = value.ticket;
        let queue = value.queue();
        let has_leftovers = queue.has_leftovers();
        if has_leftovers {
            reclaim::bound(queue, ticket);
            reclaim::note_purged(self.db(), self.name());
        }
        if waiting.any() && queue.is_disposable() {
            blocked::keep_queue(self.db(), self.name());
        }
        let mut at = match is_over {
            true => 0,
            false => attention_at(queue, waiting, now),
        };
        if waiting.filling {
            let filling = blocked::attention_to_filling(self.db(), self.name(), queue, now);
            at = at.min(filling.unwrap_or(agenda::IDLE));
        }
        if at <= now.ms() {
            at = agenda::at_once(now.ms());
        }
        if at < value.armed_for {
            value.armed_for = at;
            agenda::set(self.db(), self.name(), at);
            agenda::arm(at);
        }
        // Subscribers hear of jobs that become due; and as many purged jobs may wait as are entered.
        let at_once = has_leftovers || replicate::subscribed_since().is_some();
        if at_once || !value.is_marked() {
            value.account(self.db(), self.name(), now, at_once);
        }
    }
}

/// A key whose queue is being changed. If a panic unwinds, dropping this finishes the key.
struct Changing<'a, 'e> {
    open: Option<OpenKey<'a>>,
    now: Now,
    effects: &'e mut Effects,
}

impl Drop for Changing<'_, '_> {
    #[cold]
    fn drop(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let (now, name, effects) = (self.now, open.name(), &mut *self.effects);
        effects.drop_unfinished();
        // What has panicked once may panic again; during an unwind that would end the server.
        if let Err(panic) = caught(|| open.finish(now, effects)) {
            log_bug(&format!("what follows on '{}'", shown(name)), &panic);
        }
    }
}

/// When the timer must check a queue that was just loaded. What is left to free is not on the agenda yet.
pub fn attention_after_load(queue: &Queue, waiting: Kinds, now: Now) -> u64 {
    if queue.has_leftovers() || is_over(queue, waiting) || waiting.filling {
        return 0;
    }
    attention_at(queue, waiting, now)
}

/// Whether the queue's key is to be removed.
#[inline]
fn is_over(queue: &Queue, waiting: Kinds) -> bool {
    queue.is_disposable() && !waiting.any()
}

/// The instant at which the timer must check a queue that stays.
#[inline(always)]
fn attention_at(queue: &Queue, waiting: Kinds, now: Now) -> u64 {
    // Runs with each command: a plain minimum, of which usually only the first instant exists.
    let mut at = queue.next_event().unwrap_or(agenda::IDLE);
    if waiting.without_fill() {
        at = at.min(
            queue
                .serving()
                .next_delivery(now, waiting.noack)
                .unwrap_or(agenda::IDLE),
        );
    }
    at
}

impl Drop for OpenKey<'_> {
    fn drop(&mut self) {
        // SAFETY: opened in `open_as`, closed once.
        unsafe { api!(RedisModule_CloseKey, self.key) };
    }
}
