package dq

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	slack        = 5 * time.Second // how much longer than its wait a BPOP may take, on a slow network
	shortestBeat = 5 * time.Millisecond
	gatherFor    = time.Millisecond
	gatherUpTo   = 100
	tellAtOnce   = 500         // then a heartbeat may be due
	telling      = time.Second // from the end of drain on: half of it for handlers that were told, half for the server
	noWait       = time.Millisecond
)

// link is the queues that are reached by one pair of connections. On one its supplier waits for jobs, with the
// acknowledgements of finished ones in the same write. With the other its courier tells the server what no fetch took
// along within a millisecond, renews leases, and withdraws the waiting fetch when the worker stops.
type link struct {
	worker     *Worker
	fetches    *fetches
	codecs     map[string]Codec
	waiting    *line
	control    *line
	bell       chan struct{}
	isFetching atomic.Bool
	finishBy   time.Time
	finishing  chan struct{} // closed when finishBy is set
	ended      chan struct{} // closed when the courier has ended

	packed   []byte // of the supplier
	troubles int    // of the supplier

	mu       sync.Mutex
	held     map[*Job]struct{}
	unheard  map[*Job]struct{} // settled, and the server has not answered yet
	outcomes []*outcome
}

func newLink(w *Worker, members []member, isWeighted bool) *link {
	client, key := members[0].queue.client, members[0].key
	made := &link{
		worker:    w,
		fetches:   &fetches{members, isWeighted, ms(w.lease)},
		codecs:    map[string]Codec{},
		waiting:   &line{client: client, key: key, timeout: w.wait + slack},
		control:   &line{client: client, key: key, timeout: w.answer},
		bell:      make(chan struct{}, 1),
		finishing: make(chan struct{}),
		ended:     make(chan struct{}),
		held:      map[*Job]struct{}{},
		unheard:   map[*Job]struct{}{},
	}
	for _, each := range members {
		made.codecs[each.key] = each.queue.codec
	}
	return made
}

// --- What the server is to be told

func (l *link) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

func (l *link) takeOutcomes(count int) []*outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	count = min(count, len(l.outcomes))
	taken := l.outcomes[:count:count]
	l.outcomes = l.outcomes[count:]
	return taken
}

// putBack is for outcomes that have no answer yet: an ACK is safe to send twice.
func (l *link) putBack(untold []*outcome) {
	if len(untold) > 0 {
		l.mu.Lock()
		l.outcomes = append(untold[:len(untold):len(untold)], l.outcomes...)
		l.mu.Unlock()
	}
}

func (l *link) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.outcomes)
}

// settle: who takes a job out of held decides how it ends: its handler, a heartbeat or the stop.
func (l *link) settle(job *Job, decide func() *outcome) {
	l.mu.Lock()
	_, isHeld := l.held[job]
	if isHeld {
		delete(l.held, job)
		l.unheard[job] = struct{}{}
	}
	l.mu.Unlock()
	if isHeld {
		made := decide()
		l.mu.Lock()
		l.outcomes = append(l.outcomes, made)
		l.mu.Unlock()
	}
}

func (l *link) giveBack(job *Job) {
	l.settle(job, func() *outcome { return returned(job) })
	l.ring()
}

// hear takes the answers in; it returns those that have none yet, and what went wrong.
func (l *link) hear(on *line, told []*outcome) (untold []*outcome, trouble error) {
	for len(told) > 0 {
		reply, err := on.read()
		if err != nil {
			return told, err
		}
		each := told[0]
		told = told[1:]
		if said, isError := reply.(serverError); isError {
			trouble = said
			l.putBack([]*outcome{each})
			continue
		}
		v := each.answered(reply)
		if v == open {
			l.putBack([]*outcome{each})
			continue
		}
		l.mu.Lock()
		delete(l.unheard, each.job)
		l.mu.Unlock()
		if v == lost {
			l.worker.lost(each.job)
		}
	}
	return nil, trouble
}

// --- The supplier

// fetch tells what happened since, and waits for jobs. Trouble is waited out.
func (l *link) fetch(count int, wait time.Duration) ([]*Job, error) {
	told := l.takeOutcomes(math.MaxInt)
	l.isFetching.Store(true)
	defer l.isFetching.Store(false)
	if l.worker.isDraining() {
		l.putBack(told)
		l.ring()
		return nil, nil
	}
	found, untold, err := l.exchange(told, count, wait)
	if len(untold) > 0 {
		l.putBack(untold)
		l.ring()
	}
	if err == nil {
		l.troubles = 0
		return found, nil
	}
	l.waiting.close()
	l.troubles++
	l.worker.trouble(err)
	l.worker.rest(troubleWait(l.troubles))
	return nil, err
}

func (l *link) exchange(told []*outcome, count int, wait time.Duration) ([]*Job, []*outcome, error) {
	packed := l.packed[:0]
	for _, each := range told {
		packed = appendCommand(packed, each.command)
	}
	packed = appendCommand(packed, l.fetches.command(count, wait))
	l.packed = packed
	if err := l.waiting.send(packed); err != nil {
		return nil, told, err
	}
	untold, trouble := l.hear(l.waiting, told)
	if len(untold) > 0 {
		return nil, untold, trouble
	}
	if l.pending() > 0 {
		l.ring()
	}
	reply, err := l.waiting.read()
	if err != nil {
		return nil, nil, err
	}
	if said, isError := reply.(serverError); isError {
		return nil, nil, said
	}
	found := l.jobsOf(reply)
	if len(found) == 0 {
		return nil, nil, trouble
	}
	// Whatever became of the rest: they are ours now.
	l.mu.Lock()
	for _, job := range found {
		l.held[job] = struct{}{}
	}
	l.mu.Unlock()
	return found, nil, nil
}

// --- The courier

func (l *link) carry() {
	defer close(l.ended)
	beat := max(l.worker.lease/3, shortestBeat)
	next := time.Now().Add(beat)
	timer := time.NewTimer(beat)
	defer timer.Stop()
	troubles := 0
	for {
		timer.Reset(time.Until(next))
		select {
		case <-l.bell:
		case <-timer.C:
		case <-l.finishing:
			l.finish()
			return
		}
		var err error
		// First, so that nothing that the server refuses keeps leases from being renewed.
		if now := time.Now(); !now.Before(next) {
			if err = l.beat(); err == nil {
				next = now.Add(beat)
			}
		}
		if err == nil {
			err = l.round()
		}
		if err == nil {
			troubles = 0
			continue
		}
		l.control.close()
		troubles++
		l.worker.trouble(err)
		select {
		case <-time.After(min(troubleWait(troubles), beat)):
		case <-l.finishing:
		}
		l.ring()
	}
}

func (l *link) round() error {
	if l.worker.isDraining() {
		if err := l.withdraw(); err != nil {
			l.waiting.cut()
			return err
		}
	} else if waiting := l.pending(); 0 < waiting && waiting < gatherUpTo {
		time.Sleep(gatherFor) // so that a fetch may take them along
	}
	return l.tellSome()
}

func (l *link) tellAll() error {
	for l.pending() > 0 {
		if err := l.tellSome(); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) tellSome() error {
	told := l.takeOutcomes(tellAtOnce)
	if len(told) == 0 {
		return nil
	}
	var packed []byte
	for _, each := range told {
		packed = appendCommand(packed, each.command)
	}
	if err := l.control.send(packed); err != nil {
		l.putBack(told)
		return err
	}
	untold, err := l.hear(l.control, told)
	l.putBack(untold)
	if l.pending() > 0 {
		l.ring()
	}
	return err
}

// beat renews all leases; a job whose answer is nil is lost.
func (l *link) beat() error {
	for key, group := range byKey(append(l.heldJobs(), l.unheardJobs()...)) {
		replies, err := l.control.ask(forAll("DQ.TOUCH", key, group, "TTR", ms(l.worker.lease)))
		if err != nil {
			return err
		}
		if said, isError := replies[0].(serverError); isError {
			return said
		}
		deadlines := asList(replies[0])
		for at, job := range group {
			if at < len(deadlines) && deadlines[at] == nil && l.release(job) {
				l.worker.lost(job)
			}
		}
	}
	return nil
}

func (l *link) heldJobs() []*Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.held))
}

func (l *link) unheardJobs() []*Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.unheard))
}

func (l *link) release(job *Job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, isHeld := l.held[job]
	delete(l.held, job)
	return isHeld
}

// withdraw ends the fetch that waits. A job that was handed out in that instant is read, and given back.
func (l *link) withdraw() error {
	patience := time.Now().Add(telling)
	for l.isFetching.Load() && time.Now().Before(patience) {
		id := l.waiting.id.Load()
		if id == 0 {
			break
		}
		replies, err := l.control.ask([]string{"CLIENT", "UNBLOCK", strconv.FormatInt(id, 10)})
		if err != nil {
			return err
		}
		if _, ok := replies[0].(int64); !ok {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if l.isFetching.Load() {
		l.waiting.cut()
	}
	return nil
}

// finish tells what the server has still to hear, and gives back all that is left.
func (l *link) finish() {
	var commands [][]string
	for key, group := range byKey(l.heldJobs()) {
		left := group[:0]
		for _, job := range group {
			if l.release(job) {
				job.end(ErrStopping)
				left = append(left, job)
			}
		}
		if len(left) > 0 {
			commands = append(commands, forAll("DQ.NACK", key, left, "SILENT"))
		}
	}
	for troubles := 1; ; troubles++ {
		var err error
		if len(commands) > 0 {
			err = l.control.order(commands)
		}
		if err == nil {
			commands = nil
			err = l.tellAll()
		}
		if err == nil {
			return
		}
		l.control.close()
		pause := troubleWait(troubles)
		if time.Now().Add(pause).After(l.finishBy) {
			return
		}
		time.Sleep(pause)
	}
}

// --- Orders of the worker

func (l *link) tellJobs() {
	for _, job := range l.heldJobs() {
		job.end(ErrStopping)
	}
}

func (l *link) finishAt(by time.Time) {
	l.finishBy = by
	close(l.finishing)
	select {
	case <-l.ended:
	case <-time.After(time.Until(by)):
	}
	l.waiting.cut()
	l.control.cut()
}
