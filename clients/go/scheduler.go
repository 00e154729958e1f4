package dq

import "time"

const (
	turnPause = 250 * time.Millisecond // from a recall to the link's next turn; also the longest wait of a fetch where recalls are refused
	turnHold  = 25 * time.Millisecond  // how long a fetch may wait before it is recalled, with few links
	nobody    = -1
)

// linkScheduler decides which of a worker's links fetches next, without I/O, goroutines or a clock. A fetch that waits holds
// places that ready jobs of another link may need, so it can be recalled.
type linkScheduler []turn // by the numbers of the links

type turn struct {
	due        time.Time // the turn's earliest time
	isAwaited  bool      // the link wants to fetch
	isOut      bool      // the link fetches
	since      time.Time // since when it fetches, or when it was last recalled
	isRecalled bool
}

// ask begins the fetch of a link, and returns for how many of the free places. If it may not fetch yet, that is 0. Then
// late is the link to recall, or nobody, and the link asks again at that time (zero: only when something has changed).
func (s linkScheduler) ask(number, free int, now time.Time) (claim, late int, again time.Time) {
	mine := &s[number]
	mine.want(now)
	switch {
	case mine.due.After(now):
		return 0, nobody, mine.due
	case !s.isFirst(mine):
		return 0, nobody, time.Time{}
	case free > 0:
		mine.isAwaited, mine.isOut, mine.since = false, true, now
		return max(1, free/len(s)), nobody, time.Time{}
	}
	late, at := s.next()
	if late == nobody || at.After(now) {
		return 0, nobody, at
	}
	s[late].isRecalled, s[late].since = true, now
	return 0, late, now.Add(s.hold())
}

// want puts the link in line, behind those that wait already.
func (t *turn) want(now time.Time) {
	if !t.isAwaited && t.due.Before(now) {
		t.due = now
	}
	t.isAwaited = true
}

func (s linkScheduler) isFirst(mine *turn) bool {
	for _, each := range s {
		if each.isAwaited && each.due.Before(mine.due) {
			return false
		}
	}
	return true
}

// next returns the link to recall next, and when: the one that has waited longest. A recalled link gets time to return.
func (s linkScheduler) next() (late int, at time.Time) {
	late = nobody
	for number, each := range s {
		if !each.isOut {
			continue
		}
		if late == nobody || each.since.Before(s[late].since) {
			late = number
		}
		if each.isRecalled && each.since.After(at) {
			at = each.since
		}
	}
	if late == nobody {
		return nobody, time.Time{}
	}
	if s[late].since.After(at) {
		at = s[late].since
	}
	return late, at.Add(s.hold())
}

// hold is how long a fetch may wait before it is recalled. With many links it is shorter, so that a link with jobs
// fetches at least half of the time.
func (s linkScheduler) hold() time.Duration { return min(turnHold, turnPause/time.Duration(2*len(s))) }

func (s linkScheduler) end(number int, isEmpty bool, now time.Time) {
	mine := &s[number]
	if mine.isRecalled && isEmpty {
		mine.due = now.Add(turnPause)
	}
	mine.isOut, mine.isRecalled = false, false
}

const (
	shortestIsolation = time.Second // whatever the drain
	longestIsolation  = 24 * time.Hour
)

// isolation decides when nothing is fetched until nothing is in hand, and then one job, as one may have ended its
// workers.
//
// In hand, that job would lose its last attempt with the next one that ends the worker. So it waits in the server, where
// an idle worker finds it at once. No worker holds it, so no two can wait for each other.
//
// It lasts as long as patience at most, for a handler that takes longer must not keep all the others idle. For as long
// other jobs are fetched then, and that one is delayed: it has the next try.
type isolation struct {
	patience time.Duration
	until    time.Time
}

// want gives back a job that is to run alone, as others are in hand. It returns by how much that job is delayed.
func (i *isolation) want(now time.Time) time.Duration {
	if !now.Before(i.until.Add(i.patience)) {
		i.until = now.Add(i.patience)
	}
	if i.isOn(now) {
		return 0
	}
	return i.until.Add(i.patience).Sub(now)
}

func (i *isolation) isOn(now time.Time) bool { return now.Before(i.until) }

// lookAt returns when it ends, or the other time if that is earlier, or if it is not on (zero: none).
func (i *isolation) lookAt(now, other time.Time) time.Time {
	if i.isOn(now) && (other.IsZero() || i.until.Before(other)) {
		return i.until
	}
	return other
}

func (i *isolation) end() { i.until = time.Time{} }
