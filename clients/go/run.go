package dq

import (
	"context"
	"errors"
	"runtime/debug"
)

// work runs handlers in a goroutine of its own, as long as there is something to do.
func (w *Worker) work(batch []*Job) {
	defer func() {
		if batch == nil {
			return
		}
		// The handler ended this goroutine (runtime.Goexit): the next one goes on.
		if next := w.next(batch, errExited); next != nil {
			go w.work(next)
		}
	}()
	for batch != nil {
		err := w.handle(batch)
		batch = w.next(batch, err)
	}
}

// next settles what has ended, and answers what is to be done now.
func (w *Worker) next(batch []*Job, err error) []*Job {
	w.handled(batch, err)
	w.mu.Lock()
	w.inHand -= len(batch)
	var following []*Job
	if len(w.backlog) > 0 && !w.isDraining() {
		following = w.take()
	} else {
		w.running--
	}
	takenAlong := w.isHungry && !w.isDraining()
	w.room.Broadcast()
	w.mu.Unlock()
	if !takenAlong {
		for _, job := range batch {
			job.link.ring()
		}
	}
	if following == nil {
		w.ended()
	}
	return following
}

// handle calls the handler with those jobs that were not lost meanwhile.
func (w *Worker) handle(batch []*Job) error {
	left := make([]*Job, 0, len(batch))
	for _, job := range batch {
		if job.why() == nil {
			left = append(left, job)
		}
	}
	if len(left) == 0 {
		return nil
	}
	ctx, cancel := contextOf(w.base, left)
	defer cancel(nil)
	for _, job := range left {
		for _, hooks := range w.hooks {
			if hooks.Before != nil {
				w.guard("Before", func() { ctx = hooks.Before(ctx, job) })
			}
		}
		job.ctx = ctx
	}
	return call(ctx, left)
}

func call(ctx context.Context, batch []*Job) (err error) {
	defer func() {
		if raised := recover(); raised != nil {
			err = &PanicError{raised, debug.Stack()}
		}
	}()
	if h := batch[0].handler; h.DoBatch != nil {
		return h.DoBatch(ctx, batch)
	}
	return batch[0].handler.Do(ctx, batch[0])
}

func (w *Worker) handled(batch []*Job, err error) {
	for _, job := range batch {
		if job.ctx == nil { // it was told before its handler began
			job.link.settle(job, func() *outcome { return returned(job) })
			continue
		}
		failure := err
		if job.err != nil {
			failure = job.err
		}
		w.report(job, failure)
		job.link.settle(job, func() *outcome { return ended(job, failure) })
	}
}

func (w *Worker) report(job *Job, failure error) {
	if failure != nil && !isSaid(failure) && job.why() == nil {
		attributes := []any{"job", job.ID, "queue", job.Queue, "attempt", job.Attempt, "error", failure}
		var panicked *PanicError
		if errors.As(failure, &panicked) {
			attributes = append(attributes, "stack", string(panicked.Stack))
		}
		w.log.Warn("dq: a job failed", attributes...)
	}
	for _, hooks := range w.hooks {
		switch {
		case failure != nil && hooks.Failed != nil:
			w.guard("Failed", func() { hooks.Failed(job.ctx, job, failure) })
		case failure == nil && hooks.After != nil:
			w.guard("After", func() { hooks.After(job.ctx, job) })
		}
	}
}

// isSaid: a handler said it on purpose.
func isSaid(err error) bool {
	var snooze *SnoozeError
	var giveUp *GiveUpError
	return isRetry(err) || errors.As(err, &snooze) || errors.As(err, &giveUp)
}

// Drain is for tests: it handles in this goroutine all jobs that are ready or become so meanwhile, and answers how
// many. The worker does not run besides.
func (w *Worker) Drain(ctx context.Context) (int, error) {
	w.base = ctx
	handled := 0
	for _, l := range w.links {
		for {
			found, err := l.fetch(w.capacity, noWait)
			if err != nil {
				if end := fatal(err); end != nil {
					return handled, end
				}
				return handled, err
			}
			for _, job := range found {
				if job.handler = w.handlers.choose(job); job.handler == nil {
					l.settle(job, func() *outcome { return unknown(job) })
				}
			}
			w.backlog = withHandler(found)
			for len(w.backlog) > 0 {
				batch := w.take()
				err := w.handle(batch)
				w.handled(batch, err)
				handled += len(batch)
			}
			if err := l.tellAll(); err != nil {
				return handled, err
			}
			if len(found) == 0 || ctx.Err() != nil {
				break
			}
		}
	}
	return handled, ctx.Err()
}

func withHandler(jobs []*Job) []*Job {
	var known []*Job
	for _, job := range jobs {
		if job.handler != nil {
			known = append(known, job)
		}
	}
	return known
}
