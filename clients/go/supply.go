package dq

// How jobs come to the handlers of a worker.

func (w *Worker) supply(l *link) {
	wait := w.wait
	if w.capacity < len(w.links) {
		wait = min(wait, turn)
	}
	for {
		claim := w.claim(l)
		if claim == 0 {
			break
		}
		found, _ := l.fetch(claim, wait)
		w.accept(found, claim)
	}
	close(l.supplied)
	l.ring()
	w.mu.Lock()
	w.suppliers--
	w.mu.Unlock()
	w.ended()
}

// claim waits for room; links take turns. It answers 0 when the worker stops.
func (w *Worker) claim(l *link) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns = append(w.turns, l)
	isOnly := len(w.links) == 1
	for !w.isDraining() && (w.turns[0] != l || w.free() < 1) {
		w.isHungry = isOnly
		w.room.Wait()
	}
	w.isHungry = false
	for at, each := range w.turns {
		if each == l {
			w.turns = append(w.turns[:at:at], w.turns[at+1:]...)
			break
		}
	}
	w.room.Broadcast()
	if w.isDraining() {
		return 0
	}
	claim := max(1, w.free()/len(w.links))
	w.claimed += claim
	return claim
}

// free is how many jobs can start, whatever their kinds, and how many may be fetched ahead of that.
func (w *Worker) free() int {
	return (w.concurrency-w.running)*w.handlers.size + w.prefetch - len(w.backlog) - w.claimed
}

// accept starts handlers for what was found, keeps it for later, or gives it back.
func (w *Worker) accept(found []*delivery, claim int) {
	var back []*delivery
	w.mu.Lock()
	w.claimed -= claim
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

// take takes one job of the backlog, or as many as its handler takes at a time.
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
