package dq

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

const aloneAgain = 20 * time.Millisecond // when to look again whether a job can run alone

// The supplier of a link: fetches jobs and hands them to the worker's handlers.

func (w *Worker) supply(l *link) {
	for !w.isDraining() {
		err := l.open()
		if err == nil {
			err = w.supplySome(l)
		}
		if err != nil {
			w.rest(trouble.Pause(l.troubles)) // without a claim: other links may use the places
		}
	}
	close(l.supplied)
	l.wake()
	w.mu.Lock()
	w.suppliers--
	w.mu.Unlock()
	w.ended()
}

func (w *Worker) supplySome(l *link) error {
	runtime.Gosched() // handlers that are about to end do so first: their places and ends go with the same fetch
	claim := w.claim(l)
	if claim == 0 {
		return nil
	}
	found, err := l.fetch(claim, l.longestWait())
	w.accept(l, found, claim)
	return err
}

func (l *link) exchange(told []*outcome, count int, wait time.Duration) ([]*delivery, []*outcome, error) {
	packed := pack(l.packed[:0], told)
	asked := l.idle.Asks()
	for _, key := range asked {
		packed = resp.Append(packed, []string{"DQ.EXPLAIN", key})
	}
	packed = resp.Append(packed, l.fetches.command(count, wait, time.Now()))
	l.packed = packed
	sent := time.Now()
	if err := l.waiting.send(packed); err != nil {
		return nil, told, err
	}
	untold, trouble := l.hear(l.waiting, told)
	if len(untold) > 0 {
		return nil, untold, trouble
	}
	if l.pending() > 0 {
		l.wake()
	}
	for _, key := range asked {
		reply, err := l.waiting.read()
		if err != nil {
			return nil, nil, err
		}
		l.explained(key, reply)
	}
	reply, err := l.waiting.read()
	if err != nil {
		return nil, nil, err
	}
	if said, isError := reply.(resp.Error); isError {
		return nil, nil, said
	}
	found := l.deliveriesOf(reply)
	lasted := time.Since(sent)
	l.idle.Fetched(len(found) > 0, lasted)
	l.fetches.fetched(len(found) > 0 || lasted >= wait, sent)
	if len(found) == 0 {
		return nil, nil, trouble
	}
	mine, err := l.receive(found, sent)
	return mine, nil, err
}

// explained says why jobs that are ready do not come.
func (l *link) explained(key string, reply any) {
	if said, isError := reply.(resp.Error); isError {
		if trouble.IsForbidden(said) {
			l.idle.Keys = nil
			l.worker.off("DQ.EXPLAIN", "an idle worker cannot say why it gets no jobs", said)
		}
	} else if why := l.idle.Heard(reply); why != "" {
		l.worker.warn("dq: no job for a minute, although some are ready", "queue", key, "why", why)
	}
}

// claim waits for the link's turn and for free places, and returns how many it may fetch; 0 when the worker stops.
func (w *Worker) claim(l *link) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.isDraining() {
		claim, late, again := w.scheduler.ask(l.number, w.free(), time.Now())
		if claim > 0 {
			w.claimed += claim
			l.isRecalled.Store(false)
			w.room.Broadcast() // it may now be another link's turn
			return claim
		}
		if late != nobody {
			w.links[late].recall()
		}
		w.isHungry = len(w.links) == 1
		w.waitForRoom(w.isolation.lookAt(time.Now(), again))
		w.isHungry = false
	}
	return 0
}

// waitForRoom waits for any change, or until that time (zero: without limit). It is called with mu.
func (w *Worker) waitForRoom(until time.Time) {
	if !until.IsZero() {
		timer := time.AfterFunc(time.Until(until), func() {
			w.mu.Lock() // not before room.Wait
			defer w.mu.Unlock()
			w.room.Broadcast()
		})
		defer timer.Stop()
	}
	w.room.Wait()
}

// free returns how many jobs can start, whatever their kinds, plus how many may be fetched ahead.
func (w *Worker) free() int {
	switch {
	case w.isReserved():
		return 0
	case !w.isolation.isOn(time.Now()):
	case w.inHand > 0 || w.claimed > 0:
		return 0
	default:
		return 1
	}
	return (w.concurrency-w.running)*w.handlers.size + w.prefetch - len(w.backlog) - w.claimed
}

// accept starts handlers for the jobs that were fetched, keeps jobs for later, or gives them back.
func (w *Worker) accept(l *link, found []*delivery, claim int) {
	var back, suspects []*delivery
	w.mu.Lock()
	w.claimed -= claim
	w.scheduler.end(l.number, len(found) == 0, time.Now())
	if len(found) > 0 && w.inHand == 0 {
		w.isolation.end()
	}
	for _, d := range found {
		switch {
		case w.isDraining() || d.handler == nil || d.isUsedUp():
			back = append(back, d)
			continue
		case d.attempt > 1 && d.attempt == d.limit():
			w.suspects[d] = struct{}{}
			suspects = append(suspects, d)
		default:
			w.backlog = append(w.backlog, d)
		}
	}
	w.inHand += len(found)
	w.startMore()
	w.room.Broadcast()
	w.mu.Unlock()
	for _, d := range suspects {
		go w.lookUp(d)
	}
	if len(back) == 0 {
		return
	}
	for _, d := range back {
		w.refuse(d)
	}
	w.mu.Lock()
	w.putDown(len(back))
	w.mu.Unlock()
}

// putDown takes jobs out of hand whose ends are about to be sent: a job that runs alone waits for that. It is called
// with mu.
func (w *Worker) putDown(count int) {
	w.inHand -= count
	w.startMore()
	w.room.Broadcast()
}

// refuse ends a delivery whose handler never begins.
func (w *Worker) refuse(d *delivery) {
	switch {
	case w.isDraining():
		d.link.giveBack(d, returned(d))
	case d.handler == nil:
		attributes := []any{"job", d.id, "kind", d.shownKind()}
		if meant := w.handlers.nearest(d.shownKind()); meant != "" {
			attributes = append(attributes, "did it mean", meant)
		}
		w.warn("dq: no handler for this kind", attributes...)
		d.link.giveBack(d, unknown(d))
	default:
		w.warn("dq: a job is dead, its attempts are used up and its workers were lost", "job", d.id, "queue", d.queue)
		d.link.giveBack(d, dead(d, usedUpReason))
	}
}

// startMore starts handlers for jobs that wait. It is called with mu.
func (w *Worker) startMore() {
	for w.alone == nil && w.running < w.concurrency && len(w.backlog) > 0 && !w.isHeld() {
		w.running++
		w.handOver(w.take())
	}
	if w.killer != nil && !w.isDraining() {
		w.runAlone()
	}
}

// --- Jobs that may have ended their workers run their last attempt with nothing else in hand

// isUsedUp says whether earlier deliveries have used up the attempts without an answer.
func (d *delivery) isUsedUp() bool {
	limit := d.limit()
	return d.attempt > 1 && 0 < limit && limit < d.attempt
}

// isReserved says whether nothing more may be taken in hand. It is called with mu.
func (w *Worker) isReserved() bool { return len(w.suspects) > 0 || w.killer != nil || w.alone != nil }

// lookUp asks how a job's delivery before this one ended. Its handler may have ended its worker.
func (w *Worker) lookUp(d *delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reply, err := d.ask(ctx, words{"DQ.GET", d.queue, d.id, "PREFIX", 0})
	if trouble.IsForbidden(err) {
		w.off("DQ.GET", "jobs that may end their workers are not run alone", err)
	}
	isKiller := err == nil && resp.Text(resp.Map(reply)["reason"]) == "lease ended"
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, isOurs := w.suspects[d]; !isOurs { // given back meanwhile
		return
	}
	delete(w.suspects, d)
	switch {
	case !isKiller:
		w.backlog = append(w.backlog, d)
	case w.inHand == 1 && w.claimed == 0:
		w.killer = d
		go w.warn("dq: a job may have ended its workers: its last attempt runs alone", "job", d.id, "queue", d.queue)
	default:
		w.isolate(d)
	}
	w.startMore()
	w.room.Broadcast()
}

// isolate gives back a job that is to run alone, until nothing else is in hand. It is called with mu.
func (w *Worker) isolate(d *delivery) {
	now := time.Now()
	if !w.isolation.isOn(now) {
		go w.warn("dq: a job may have ended its workers: its last attempt waits until it can run alone", "job", d.id, "queue", d.queue)
	}
	made := returned(d)
	if delay := w.isolation.want(now); delay > 0 {
		made = returnedFor(d, delay)
	}
	d.link.giveBack(d, made)
	w.returning = append(w.returning, d)
	w.inHand--
}

// isHeld says whether no job may begin, as it could take along one that is to run alone. It is called with mu.
func (w *Worker) isHeld() bool {
	w.returning = slices.DeleteFunc(w.returning, func(d *delivery) bool {
		return !slices.ContainsFunc(w.links, func(l *link) bool { return l.isTellingOf(d) })
	})
	if len(w.returning) > 0 {
		w.startLater()
	}
	return len(w.suspects) > 0 || len(w.returning) > 0
}

// runAlone begins the killer once the server knows the ends of all others. It is called with mu.
func (w *Worker) runAlone() {
	if slices.ContainsFunc(w.links, (*link).isTelling) {
		w.startLater()
		return
	}
	w.alone, w.killer = w.killer, nil
	w.running++
	go w.work([]*delivery{w.alone})
}

// startLater is called with mu.
func (w *Worker) startLater() {
	if !w.isWaiting {
		w.isWaiting = true
		time.AfterFunc(aloneAgain, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.isWaiting = false
			w.startMore()
		})
	}
}

// take takes one job off the backlog, or as many as its handler takes at a time. It is called with mu.
func (w *Worker) take() []*delivery {
	first := w.backlog[0]
	size := first.handler.size()
	if size == 1 {
		w.backlog = w.backlog[1:]
		return []*delivery{first}
	}
	var batch, rest []*delivery
	for _, d := range w.backlog {
		if d.handler == first.handler && len(batch) < size {
			batch = append(batch, d)
		} else {
			rest = append(rest, d)
		}
	}
	w.backlog = rest
	return batch
}
