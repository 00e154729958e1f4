package dq

import (
	"context"
	"log/slog"
	"time"
)

// work runs the handler of a batch in this goroutine, and then whatever follows in another one.
func (w *Worker) work(batch []*delivery) {
	w.attempt(batch, func() {
		if following := w.next(batch); following != nil {
			go w.work(following)
		}
	})
}

// attempt calls the handler of a batch, which may end this goroutine, settles what ended, and calls next.
func (w *Worker) attempt(batch []*delivery, next func()) {
	var ours []*delivery
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
	if len(ours) == 0 {
		next()
		return
	}
	ctx, cancel := w.begin(ours)
	through(func() error { return call(ctx, ours) }, func(err error) {
		cancel(nil)
		for _, d := range ours {
			begun.end(d)
			w.finished(d, err)
		}
		next()
	})
}

func (w *Worker) begin(batch []*delivery) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := contextOf(w.base, batch)
	for _, d := range batch {
		for _, hooks := range w.hooks {
			if hooks.Before == nil {
				continue
			}
			var changed context.Context
			w.hook("Before", func() { changed = hooks.Before(ctx, d.job) })
			if changed != nil && !isNil(changed) {
				ctx = changed
			}
		}
		d.ctx = ctx
	}
	return ctx, cancel
}

func call(ctx context.Context, batch []*delivery) error {
	h := batch[0].handler
	if h.DoBatch == nil {
		return h.Do(ctx, batch[0].job)
	}
	jobs := make([]*Job, len(batch))
	for at, d := range batch {
		jobs[at] = d.job
	}
	return h.DoBatch(ctx, jobs)
}

func (w *Worker) finished(d *delivery, err error) {
	v, err := d.verdict(err)
	w.report(d, v, err)
	d.link.settle(d, settled(d, v))
}

func (w *Worker) report(d *delivery, v verdict, err error) {
	if v.unfit != "" {
		w.warn("dq: a handler said what cannot be, going on without it", "job", d.id, "queue", d.queue, "said", v.unfit)
	}
	if err != nil && !v.isMeant && d.why() == nil {
		attributes := []any{"job", d.id, "queue", d.queue, "attempt", d.attempt, "error", v.reason}
		if v.stack != nil {
			attributes = append(attributes, "stack", string(v.stack))
		}
		w.warn("dq: a job failed", attributes...)
	}
	for _, hooks := range w.hooks {
		switch {
		case err != nil && hooks.Failed != nil:
			w.hook("Failed", func() { hooks.Failed(d.ctx, d.job, err) })
		case err == nil && hooks.After != nil:
			w.hook("After", func() { hooks.After(d.ctx, d.job) })
		}
	}
}

// next answers what is to be done now.
func (w *Worker) next(batch []*delivery) []*delivery {
	w.mu.Lock()
	w.inHand -= len(batch)
	var following []*delivery
	if len(w.backlog) > 0 && !w.isDraining() {
		following = w.take()
	} else {
		w.running--
	}
	takenAlong := w.isHungry && !w.isDraining()
	w.room.Broadcast()
	w.mu.Unlock()
	if !takenAlong {
		for _, d := range batch {
			d.link.ring()
		}
	}
	if following == nil {
		w.ended()
	}
	return following
}

// --- What is told to others

// lost tells the handler and the hooks. The caller has released the delivery, and does not wait for the hooks.
func (w *Worker) lost(d *delivery) {
	d.end(ErrLost)
	w.mu.Lock()
	w.reporting++
	w.mu.Unlock()
	go through(func() error {
		w.warn("dq: lost a job, its lease expired before it was acknowledged", "job", d.id, "queue", d.queue)
		for _, hooks := range w.hooks {
			if hooks.Lost != nil {
				w.hook("Lost", func() { hooks.Lost(d.job) })
			}
		}
		return nil
	}, func(error) {
		w.mu.Lock()
		w.reporting--
		w.mu.Unlock()
		w.ended()
	})
}

func (w *Worker) hook(name string, hook func()) {
	if err := door(func() error { hook(); return nil }); err != nil {
		report(w.logger, slog.LevelError, "dq: a hook failed", "hook", name, "error", err.Error())
	}
}

func (w *Worker) warn(said string, attributes ...any) {
	report(w.logger, slog.LevelWarn, said, attributes...)
}

// --- For tests

// Drain is for tests: it handles, one after the other, all jobs that are ready or become so meanwhile, and answers how
// many. The worker does not run besides.
func (w *Worker) Drain(ctx context.Context) (int, error) {
	w.base, w.isDrained = ctx, true
	handled := 0
	for _, l := range w.links {
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
	return handled, ctx.Err()
}

func (w *Worker) handleAll(found []*delivery) (handled int) {
	for _, d := range found {
		if d.handler == nil {
			d.link.giveBack(d, unknown(d))
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
