package dq

import (
	"cmp"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const (
	shortestBeat  = 5 * time.Millisecond
	shortestDoubt = time.Second
	inHandDelay   = time.Second
)

// --- What was delivered

// receive takes deliveries in hand, with the leases that their jobs are to have, and returns those that may begin.
func (l *link) receive(found []*delivery, sent time.Time) ([]*delivery, error) {
	now := time.Now()
	mine, older := l.takeInHand(found, now)
	for _, d := range older {
		if d.link.lose(d) {
			l.worker.warn("dq: a job that still runs here was delivered again, gave it back", "job", d.id, "queue", d.queue)
		}
	}
	return l.renew(mine, now.Sub(sent))
}

// takeInHand gives back deliveries of jobs whose older delivery still runs in this process; the older ones are lost.
func (l *link) takeInHand(found []*delivery, now time.Time) (mine, older []*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range found {
		old := l.inFlight[d.jobKey]
		if old == nil {
			old = begun.other(d)
		}
		if old == nil {
			l.inFlight[d.jobKey] = d
			d.isHeld, d.since = true, now
			l.lasts(d, now)
			mine = append(mine, d)
			continue
		}
		older = append(older, old)
		l.tell(returnedFor(d, inHandDelay))
		l.wake()
	}
	return mine, older
}

// lasts records that a delivery's lease began at since. It is called with mu.
func (l *link) lasts(d *delivery, since time.Time) {
	if l.isDrained { // the server's clock may stand still
		return
	}
	l.listenSoon()
	s := &l.schedule
	d.until = since.Add(d.lease)
	if s.ends.IsZero() || d.until.Before(s.ends) {
		s.ends = d.until
		s.watch.Reset(time.Until(s.ends))
	}
	if s.shortest == 0 || d.lease < s.shortest {
		s.shortest = d.lease
	}
	if next := since.Add(beatOf(d.lease)); s.beat.IsZero() || next.Before(s.beat) {
		s.beat = next
		l.wake()
	}
}

func beatOf(lease time.Duration) time.Duration { return max(lease/3, shortestBeat) }

// renew corrects the leases of kinds that have their own, and of deliveries whose reply may have lain unread as long as
// their lease. A delivery that the server no longer knows never begins.
func (l *link) renew(mine []*delivery, age time.Duration) ([]*delivery, error) {
	byLength := map[time.Duration][]*delivery{}
	var sure []*delivery
	for _, d := range mine {
		wanted := l.fetches.leases.wanted(d.handler, d.terms.ttr)
		if wanted == d.lease && age < max(d.lease, shortestDoubt) {
			sure = append(sure, d)
		} else {
			byLength[wanted] = append(byLength[wanted], d)
		}
	}
	for length, group := range byLength {
		now := time.Now()
		replies, err := l.waiting.ask(forAll("DQ.TOUCH", group[0].queue, group, "TTR", resp.MsText(length)))
		if said := resp.FirstError(replies); err == nil && said != nil {
			err = said
		}
		if err != nil {
			return sure, l.withdrawn(byLength, err)
		}
		delete(byLength, length)
		for at, d := range group {
			if answers := resp.List(replies[0]); at < len(answers) && answers[at] != nil {
				l.mu.Lock()
				d.lease = length
				l.lasts(d, now)
				l.mu.Unlock()
				sure = append(sure, d)
				continue
			}
			l.lose(d)
			l.mu.Lock()
			l.forget(d)
			l.mu.Unlock()
		}
	}
	return sure, nil
}

// withdrawn gives back the deliveries that could not be renewed.
func (l *link) withdrawn(byLength map[time.Duration][]*delivery, err error) error {
	for _, group := range byLength {
		for _, d := range group {
			l.giveBack(d, returned(d))
		}
	}
	return err
}

// --- Heartbeats

// beatAtOnce asks for a heartbeat at once, after a connection was lost: the server then says which jobs are still ours.
func (l *link) beatAtOnce() {
	l.mu.Lock()
	l.schedule.isAsked = true
	l.mu.Unlock()
	l.wake()
}

// untilNext returns how long it is until the next heartbeat or progress report.
func (l *link) untilNext() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := time.Hour
	for _, next := range []time.Time{l.schedule.beat, l.schedule.progress} {
		if !next.IsZero() {
			left = min(left, time.Until(next))
		}
	}
	return left
}

// patience returns how long to wait for a reply.
func (l *link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.schedule.shortest == 0 {
		return longestAnswer
	}
	return min(longestAnswer, max(l.schedule.shortest/3, shortestAnswer))
}

// dueForBeat returns the deliveries whose leases are to be renewed now; none if it is not yet time.
func (l *link) dueForBeat() []*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.schedule
	now := time.Now()
	if !s.isAsked && (s.beat.IsZero() || now.Before(s.beat)) {
		return nil
	}
	all := l.heldLocked()
	for d := range l.unanswered {
		all = append(all, d)
	}
	s.isAsked, s.beat, s.shortest = false, time.Time{}, 0
	for _, d := range all {
		s.shortest = min(cmp.Or(s.shortest, d.lease), d.lease)
	}
	if len(all) > 0 {
		s.beat = now.Add(beatOf(s.shortest))
	}
	return all
}

// beat renews all leases, if it is time. A job whose reply is nil is lost.
func (l *link) beat() error {
	for key, group := range byKey(l.dueForBeat()) {
		now := time.Now()
		replies, err := l.control.ask(forAll("DQ.TOUCH", key, group))
		if said := resp.FirstError(replies); err == nil && said != nil {
			err = said
		}
		l.isReached.Store(err == nil)
		if err != nil {
			l.beatAtOnce()
			return err
		}
		deadlines := resp.List(replies[0])
		for at, d := range group {
			if at < len(deadlines) && deadlines[at] != nil {
				l.mu.Lock()
				if d.isHeld {
					l.lasts(d, now)
				}
				l.mu.Unlock()
			} else {
				l.lose(d)
			}
		}
	}
	return nil
}

// --- The end of leases

// expire tells the handlers whose leases have expired, even if the server cannot be reached.
func (l *link) expire() {
	now := time.Now()
	var over []*delivery
	l.mu.Lock()
	next := time.Time{}
	for _, d := range l.heldLocked() {
		if d.isOver(now) {
			d.isHeld = false
			over = append(over, d)
		} else if next.IsZero() || d.until.Before(next) {
			next = d.until
		}
	}
	l.schedule.ends = next
	if !next.IsZero() {
		l.schedule.watch.Reset(time.Until(next))
	}
	l.mu.Unlock()
	for _, d := range over {
		l.worker.lost(d)
	}
}

func (d *delivery) isOver(now time.Time) bool { return !d.until.IsZero() && !now.Before(d.until) }

// mayBegin says whether the handler may begin: it was told nothing, and its lease has not expired.
func (l *link) mayBegin(d *delivery) bool {
	l.mu.Lock()
	isLost := d.isHeld && d.isOver(time.Now())
	if isLost {
		d.isHeld = false
	}
	l.mu.Unlock()
	if isLost {
		l.worker.lost(d)
	}
	return d.why() == nil
}

// deliveriesOf reads the reply of a fetch.
func (l *link) deliveriesOf(reply any) []*delivery {
	pair := resp.List(reply)
	if len(pair) != 2 {
		return nil
	}
	key := resp.Text(pair[0])
	rows := rowsOf(resp.List(pair[1]))
	found := make([]*delivery, len(rows))
	for at, row := range rows {
		d := deliveryOf(l.queues[key], key, row)
		d.link = l
		d.handler = l.handlers.choose(d.opened)
		d.job = jobOf(d, row.deadline)
		d.lease = l.fetches.leases.given(d.terms.ttr)
		found[at] = d
	}
	return found
}
