package dq

import "time"

const heardFrom = 20 * time.Millisecond // jobs that end sooner cost nothing

// listening is what a listener knows of its jobs, without I/O.
type listening struct {
	covered  map[*delivery]struct{} // named by the running DQ.BTOUCH; nil: none is running
	isAwake  bool
	isBehind bool // the running DQ.BTOUCH lacks jobs, and is to be ended
}

// look decides, from the jobs in hand, whether the listener has to be woken, whether its DQ.BTOUCH lacks jobs, and when to
// look again (zero: when jobs come).
func (s *listening) look(held []*delivery, now time.Time) (mustWake, isBehind bool, next time.Time) {
	for _, d := range held {
		age := now.Sub(d.since)
		_, isCovered := s.covered[d]
		switch {
		case age < heardFrom:
			if grown := d.since.Add(heardFrom); next.IsZero() || grown.Before(next) {
				next = grown
			}
		case !s.isAwake:
			mustWake = true
		case s.covered != nil && !isCovered:
			isBehind = true
		}
	}
	if mustWake || isBehind { // at most once in heardFrom
		next = now.Add(heardFrom)
	}
	return mustWake, isBehind, next
}

// cover returns the jobs for the next DQ.BTOUCH.
func (s *listening) cover(held []*delivery, now time.Time) (group []*delivery) {
	s.covered, s.isBehind = map[*delivery]struct{}{}, false
	for _, d := range held {
		if now.Sub(d.since) >= heardFrom {
			group = append(group, d)
			s.covered[d] = struct{}{}
		}
	}
	if len(group) == 0 {
		s.covered, s.isAwake = nil, false
	}
	return group
}
