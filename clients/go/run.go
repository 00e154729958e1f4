package dq

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

// work runs the handler of a batch in this goroutine, and those that follow: a goroutine of each batch's own would grow its
// stack each time.
func (w *Worker) work(batch []*delivery) {
	defer func() {
		if batch != nil { // a handler has ended this goroutine
			go w.work(batch)
		}
	}()
	for batch != nil {
		w.attempt(batch, func() { batch = w.next(batch) })
		if batch == nil {
			batch = w.following()
		}
	}
}

// following waits for a batch that is handed over; nil when the worker stops.
func (w *Worker) following() []*delivery {
	select {
	case batch := <-w.handed:
		return batch
	case <-w.draining:
		return nil
	}
}

// handOver has a goroutine work that waits for a batch, or a new one.
func (w *Worker) handOver(batch []*delivery) {
	select {
	case w.handed <- batch:
	default:
		go w.work(batch)
	}
}

// attempt calls the handler of a batch, which may end this goroutine. It settles what ended, and calls next.
func (w *Worker) attempt(batch []*delivery, next func()) {
	ours := begins(batch)
	if len(ours) == 0 {
		next()
		return
	}
	ctx, cancel := w.begin(ours)
	limit := w.limit(ours)
	guard.Run(func() error { return w.around(ctx, ours) }, func(err error) {
		limit()
		cancel(nil)
		for _, d := range ours {
			begun.end(d)
			w.finished(d, err)
		}
		next()
	})
}

// begins returns the deliveries whose handler begins; it gives back the others.
func begins(batch []*delivery) []*delivery {
	ours := make([]*delivery, 0, len(batch))
	for _, d := range batch {
		switch {
		case !d.link.mayBegin(d):
			d.link.giveBack(d, returned(d))
		case !begun.begin(d):
			d.link.giveBack(d, returnedFor(d, inHandDelay))
		default:
			ours = append(ours, d)
		}
	}
	return ours
}

func (w *Worker) begin(batch []*delivery) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := contextOf(w.base, batch)
	if limit := batch[0].handler.Timeout; limit > 0 {
		ctx = limited{ctx, time.Now().Add(limit)}
	}
	for _, d := range batch {
		for _, hooks := range w.hooks {
			if hooks.Before != nil {
				ctx = w.before(ctx, hooks, d.job)
			}
		}
		d.ctx = ctx
	}
	return ctx, cancel
}

func (w *Worker) before(ctx context.Context, hooks Hooks, job *Job) (changed context.Context) {
	w.hook("Before", func() { changed = hooks.Before(ctx, job) })
	if changed == nil || isNil(changed) {
		return ctx
	}
	return changed
}

func (w *Worker) finished(d *delivery, err error) {
	v, result, err := d.verdict(err)
	if d.why() != ErrTimeout { // the timeout has been reported
		w.report(d, v, err)
	}
	ended := settled(d, v)
	ended.result = result
	d.link.settle(d, ended)
}

func (w *Worker) report(d *delivery, v verdict, err error) {
	if v.unfit != "" {
		w.warn("dq: a handler said what cannot be, going on without it", "job", d.id, "queue", d.queue, "said", v.unfit)
	}
	if v.way != suspended && err != nil && !v.isMeant && d.why() == nil {
		attributes := []any{"job", d.id, "queue", d.queue, "attempt", d.attempt, "error", v.reason}
		if v.stack != nil {
			attributes = append(attributes, "stack", string(v.stack))
		}
		w.warn("dq: a job failed", attributes...)
	}
	w.tellHooks(d, v, err)
}

func (w *Worker) tellHooks(d *delivery, v verdict, err error) {
	for _, hooks := range w.hooks {
		switch {
		case v.way == suspended:
			if hooks.Suspended != nil {
				w.hook("Suspended", func() { hooks.Suspended(d.ctx, d.job) })
			}
		case err != nil && hooks.Failed != nil:
			w.hook("Failed", func() { hooks.Failed(d.ctx, d.job, err) })
		case err == nil && hooks.After != nil:
			w.hook("After", func() { hooks.After(d.ctx, d.job) })
		}
	}
}

// next returns the batch to run now, or nil.
func (w *Worker) next(batch []*delivery) []*delivery {
	w.mu.Lock()
	w.inHand -= len(batch)
	var following []*delivery
	if w.alone != nil && slices.Contains(batch, w.alone) {
		w.alone = nil
	}
	if len(w.backlog) > 0 && !w.isHeld() && !w.isDraining() {
		following = w.take()
	} else {
		w.running--
		w.startMore()
	}
	takenAlong := w.isHungry && w.free() > 0 && !w.isDraining()
	w.room.Broadcast()
	w.mu.Unlock()
	if !takenAlong {
		for _, d := range batch {
			d.link.wake()
		}
	}
	if following == nil {
		w.ended()
	}
	return following
}

// --- What is told to others

// lost tells the handler and the hooks that the job was lost. The caller has released the delivery. It does not wait
// for the hooks.
func (w *Worker) lost(d *delivery) {
	d.end(ErrLost)
	w.aside(func() {
		w.warn("dq: lost a job, it was cancelled or its lease expired before it was acknowledged", "job", d.id, "queue", d.queue)
		for _, hooks := range w.hooks {
			if hooks.Lost != nil {
				w.hook("Lost", func() { hooks.Lost(d.job) })
			}
		}
	})
}

// died tells the hook of dead jobs, later.
func (w *Worker) died(d *delivery) { w.deaths.answer(d) }

// aside calls f in another goroutine, for which the worker waits when it stops.
func (w *Worker) aside(f func()) {
	w.mu.Lock()
	w.reporting++
	w.mu.Unlock()
	go guard.Run(func() error { f(); return nil }, func(error) {
		w.mu.Lock()
		w.reporting--
		w.mu.Unlock()
		w.ended()
	})
}

func (w *Worker) hook(name string, hook func()) {
	if err := guard.Call(func() error { hook(); return nil }); err != nil {
		guard.Log(w.logger, slog.LevelError, "dq: a hook failed", "hook", name, "error", err.Error())
	}
}

func (w *Worker) warn(said string, attributes ...any) {
	guard.Log(w.logger, slog.LevelWarn, said, attributes...)
}

// --- For tests

// Drain is for tests: it handles, one after the other, all jobs that are ready or become ready meanwhile, and returns
// how many. The worker must not run at the same time.
func (w *Worker) Drain(ctx context.Context) (int, error) {
	w.base = ctx
	handled := 0
	w.deaths.begin(ctx)
	for ; len(w.ruled) > 0; w.ruled = w.ruled[1:] {
		if err := w.sayRule(w.ruled[0]); err != nil {
			return 0, err
		}
	}
	for _, l := range w.links {
		l.isDrained = true
		for isEmpty := false; !isEmpty && ctx.Err() == nil; {
			found, err := l.fetch(w.capacity, noWait)
			isEmpty = len(found) == 0
			handled += w.handleAll(found)
			if err == nil {
				err = l.tellAll()
			}
			if end := fatal(err); end != nil {
				return handled, end
			}
			if err != nil {
				return handled, err
			}
		}
	}
	w.waitIdle(time.Now().Add(telling))
	w.deaths.drain()
	return handled, ctx.Err()
}

func (w *Worker) handleAll(found []*delivery) (handled int) {
	for _, d := range found {
		if d.handler == nil || d.isUsedUp() {
			w.refuse(d)
		} else {
			w.backlog = append(w.backlog, d)
		}
	}
	for len(w.backlog) > 0 {
		batch := w.take()
		handled += len(batch)
		ended := make(chan struct{})
		go w.attempt(batch, func() { close(ended) })
		<-ended
	}
	return handled
}
