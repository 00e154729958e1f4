package dq

import "time"

// The supplier of a link: fetches jobs and hands them to the worker's handlers.

func (w *Worker) supply(l *link) {
	for !w.isDraining() {
		err := l.open()
		if err == nil {
			err = w.supplySome(l)
		}
		if err != nil {
			w.rest(troubleWait(l.troubles)) // without a claim: other links may use the places
		}
	}
	close(l.supplied)
	l.ring()
	w.mu.Lock()
	w.suppliers--
	w.mu.Unlock()
	w.ended()
}

func (w *Worker) supplySome(l *link) error {
	claim := w.claim(l)
	if claim == 0 {
		return nil
	}
	found, err := l.fetch(claim, l.longestWait())
	w.accept(l, found, claim)
	return err
}

// claim waits for the link's turn and for free places, and returns how many it may fetch; 0 when the worker stops.
func (w *Worker) claim(l *link) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.isDraining() {
		claim, late, again := w.turns.ask(l.number, w.free(), time.Now())
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
		w.waitForRoom(again)
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
	return (w.concurrency-w.running)*w.handlers.size + w.prefetch - len(w.backlog) - w.claimed
}

// accept starts handlers for the jobs that were fetched, keeps jobs for later, or gives them back.
func (w *Worker) accept(l *link, found []*delivery, claim int) {
	var back []*delivery
	w.mu.Lock()
	w.claimed -= claim
	w.turns.end(l.number, len(found) == 0, time.Now())
	for _, d := range found {
		if w.isDraining() || d.handler == nil {
			back = append(back, d)
		} else {
			w.backlog = append(w.backlog, d)
			w.inHand++
		}
	}
	for w.running < w.concurrency && len(w.backlog) > 0 {
		w.running++
		go w.work(w.take())
	}
	w.room.Broadcast()
	w.mu.Unlock()
	for _, d := range back {
		if d.handler != nil {
			d.link.giveBack(d, returned(d))
			continue
		}
		w.warn("dq: no handler for this kind, gave the job back", "job", d.id, "kind", d.job.Kind())
		d.link.giveBack(d, unknown(d))
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
