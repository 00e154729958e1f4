package dq

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/redis-dq/redis-dq/clients/go/internal/idle"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

// link has the queues that one pair of connections reaches. On the first, its supplier waits for jobs, with the
// acknowledgements of finished ones in the same write. On the second, its batcher sends what no fetch took along within
// a millisecond, renews leases, and ends the waiting fetch when the worker stops.
type link struct {
	linkSettings
	worker     owner
	number     int // its index in the worker's links
	place      unique.Handle[place]
	fetches    *fetches
	queues     map[string]*Queue // by key
	waiting    *line             // for fetches
	control    *line
	woken      chan struct{}
	isFetching atomic.Bool
	isReached  atomic.Bool     // the last fetch or heartbeat was answered
	patient    context.Context // as long as the end may take
	supplied   chan struct{}   // closed when the supplier has ended
	finishing  chan struct{}   // closed when patient is set
	ended      chan struct{}   // closed when the batcher has ended

	isRecalled    atomic.Bool // the batcher is to end the fetch
	mayNotUnblock atomic.Bool // the server forbids DQ.UNBLOCK

	packed   []byte // of the supplier
	troubles int    // of the supplier
	idle     idle.Idle

	returning sync.Mutex
	returns   [][]string // give jobs back, and have no answer yet

	mu         sync.Mutex
	inFlight   map[jobKey]*delivery   // from delivery until the handler ended
	unanswered map[*delivery]struct{} // settled, but the server has not answered yet
	outcomes   []*outcome
	schedule   schedule

	listeners          map[string]*listener // by key
	isWithoutListeners bool                 // no listeners: only heartbeats
	isListening        bool                 // the timer is set
	listenTimer        *time.Timer
}

// linkSettings are a worker's, for each of its links.
type linkSettings struct {
	wait           time.Duration // of a fetch
	handlers       *handlers
	leases         leases
	isWeighted     bool
	isOneOfSeveral bool
	isDrained      bool // by Drain
}

func newLink(worker owner, settings linkSettings, members []member) *link {
	client, key := members[0].queue.client, members[0].key
	made := &link{
		linkSettings: settings,
		worker:       worker,
		place:        unique.Make(placeOf(client, key)),
		fetches:      &fetches{members: members, isWeighted: settings.isWeighted, leases: settings.leases, fill: settings.handlers.fill},
		queues:       map[string]*Queue{},
		waiting:      &line{client: client, key: key, timeout: settings.wait + slack},
		control:      &line{client: client, key: key, timeout: longestAnswer},
		woken:        make(chan struct{}, 1),
		supplied:     make(chan struct{}),
		finishing:    make(chan struct{}),
		ended:        make(chan struct{}),
		inFlight:     map[jobKey]*delivery{},
		unanswered:   map[*delivery]struct{}{},
	}
	made.schedule.watch = time.AfterFunc(time.Hour, made.expire)
	made.schedule.watch.Stop()
	made.listenTimer = time.AfterFunc(time.Hour, made.listen)
	made.listenTimer.Stop()
	made.listeners, made.isWithoutListeners = map[string]*listener{}, len(members) > mostListeners
	for _, each := range members {
		made.queues[each.key] = each.queue
		made.idle.Keys = append(made.idle.Keys, each.key)
	}
	return made
}

// --- What the server is to be told

func (l *link) wake() {
	select {
	case l.woken <- struct{}{}:
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

// putBack queues outcomes that have no answer yet again: they are safe to send twice.
func (l *link) putBack(untold []*outcome, wasSent bool) {
	if len(untold) > 0 {
		l.mu.Lock()
		for _, each := range untold {
			each.wasSent = each.wasSent || wasSent
		}
		l.outcomes = append(untold[:len(untold):len(untold)], l.outcomes...)
		l.mu.Unlock()
	}
}

func (l *link) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.outcomes)
}

// conclude decides how a held delivery ends. Only the first caller does: its handler, a heartbeat, the expiry of its
// lease or the stop. It is called with mu.
func (l *link) conclude(d *delivery, made *outcome) (wasHeld bool) {
	wasHeld = d.isHeld
	if wasHeld {
		d.isHeld = false
		if text := d.progress.take(); text != "" {
			made.ahead = append(made.ahead, progressCommand(d, text))
		}
		l.tell(made)
	}
	return wasHeld
}

// settle concludes a delivery whose handler ended, or never begins.
func (l *link) settle(d *delivery, made *outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conclude(d, made)
	l.forget(d)
}

// tell queues an outcome for the server. It is called with mu.
func (l *link) tell(made *outcome) {
	l.unanswered[made.of] = struct{}{}
	l.outcomes = append(l.outcomes, made)
}

// release gives up a delivery without an outcome. It says whether the delivery was still held.
func (l *link) release(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasHeld := d.isHeld
	d.isHeld = false
	return wasHeld
}

// fail concludes a delivery whose handler still runs.
func (l *link) fail(d *delivery, made *outcome) (wasHeld bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conclude(d, made)
}

// lose gives up a delivery that another worker may have.
func (l *link) lose(d *delivery) (wasHeld bool) {
	if wasHeld = l.release(d); wasHeld {
		l.worker.lost(d)
	}
	return wasHeld
}

func (l *link) at() unique.Handle[place] { return l.place }

// forget is called with mu.
func (l *link) forget(d *delivery) {
	if l.inFlight[d.jobKey] == d {
		delete(l.inFlight, d.jobKey)
	}
}

// giveBack settles a delivery whose handler never begins.
func (l *link) giveBack(d *delivery, made *outcome) {
	l.settle(d, made)
	l.wake()
}

func (l *link) held() []*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heldLocked()
}

func (l *link) heldLocked() []*delivery {
	found := make([]*delivery, 0, len(l.inFlight))
	for _, d := range l.inFlight {
		if d.isHeld {
			found = append(found, d)
		}
	}
	return found
}

// hear reads the replies to outcomes. It returns the outcomes that have none yet, and what went wrong.
func (l *link) hear(on *line, told []*outcome) (untold []*outcome, failure error) {
	var refusal error
	for len(told) > 0 {
		some, first := alike(told), told[0]
		var reply any
		for at := range first.answers() {
			if reply, failure = on.read(); failure != nil {
				return told, failure
			}
			if said, isError := reply.(resp.Error); isError && at < len(first.ahead) && trouble.IsForbidden(said) {
				l.worker.off(first.ahead[at][0], "what a worker gives back as unknown counts for its handler's limit", said)
			}
		}
		told = told[len(some):]
		each := resp.List(reply)
		for at, one := range some {
			if len(some) > 1 && len(each) == len(some) {
				reply = each[at]
			}
			refusal = cmp.Or(l.hearOf(one, reply), refusal)
		}
	}
	return nil, refusal
}

// hearOf takes the reply to one outcome. It returns an error that passes.
func (l *link) hearOf(o *outcome, reply any) error {
	isLost, said := o.heard(reply)
	switch {
	case said == "":
		l.heardOf(o)
		if isLost {
			l.worker.lost(o.of)
		}
		if o.mayBeDead(reply) {
			l.worker.died(o.of)
		}
	case o.refusedBy(said):
		l.refused(o, said)
	default:
		l.putBack([]*outcome{o}, false)
		return said
	}
	return nil
}

// isTelling says whether the server has not confirmed yet how all deliveries ended.
func (l *link) isTelling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unanswered) > 0
}

// isTellingOf says whether the server has not confirmed yet how this delivery ended.
func (l *link) isTellingOf(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, is := l.unanswered[d]
	return is
}

func (l *link) heardOf(o *outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unanswered, o.of)
}

// refused handles an outcome that the server will never accept: it is not sent again unchanged.
func (l *link) refused(o *outcome, said resp.Error) {
	if !o.isRefused {
		o.isRefused = true
		text := "dq: the server refuses how a job ended, leaving that out"
		if o.suspension != nil {
			text = "dq: the server refuses how a job would wait, so its attempt failed"
		}
		l.worker.warn(text, "job", o.of.id, "queue", o.of.queue, "error", string(said))
	}
	if o.refused(said) {
		l.putBack([]*outcome{o}, false)
		l.wake()
		return
	}
	l.heardOf(o)
}

// --- The supplier

// open connects if there are several links, before any of the shared places is claimed.
func (l *link) open() error {
	if !l.isOneOfSeveral {
		return nil
	}
	l.isFetching.Store(true) // set before isDraining is read: a worker that stops cuts the connection
	defer l.isFetching.Store(false)
	if l.worker.isDraining() {
		return nil
	}
	err := l.waiting.open()
	if err != nil {
		l.stumbled(err)
	}
	return err
}

// fetch sends the outcomes that are pending, and waits for jobs.
func (l *link) fetch(count int, wait time.Duration) ([]*delivery, error) {
	l.isFetching.Store(true) // set before the outcomes are taken: whoever waits for the fetch waits for them, too
	defer l.isFetching.Store(false)
	told := l.takeOutcomes(math.MaxInt)
	if l.worker.isDraining() {
		l.putBack(told, false)
		l.wake()
		return nil, nil
	}
	found, untold, err := l.exchange(told, count, wait)
	if len(untold) > 0 {
		l.countCut(untold, err, l.waiting.isUp())
		l.putBack(untold, l.waiting.isUp())
		l.wake()
	}
	if err == nil {
		l.troubles = 0
		l.isReached.Store(true)
		return found, nil
	}
	l.stumbled(err)
	return found, err
}

func (l *link) stumbled(err error) {
	l.isReached.Store(false)
	l.waiting.close()
	l.beatAtOnce()
	l.troubles++
	l.worker.trouble(err)
}

const mostListeners = 8 // of one link: each is a connection

// listener waits in DQ.BTOUCH for the jobs of one queue that have been in hand for a while, to notice at once when one is
// cancelled. It runs as long as there are such jobs.
type listener struct {
	link   *link
	key    string
	line   *line
	listen listening // of link.mu
}

// schedule is when a link's leases are looked after. It is guarded by link.mu.
type schedule struct {
	shortest time.Duration // of the leases in hand at the last heartbeat, and since
	beat     time.Time     // the next heartbeat; zero: nothing is in hand
	isAsked  bool          // a heartbeat was asked for at once
	progress time.Time     // when progress is to be sent; zero: there is none
	ends     time.Time     // when watch next looks for expired leases; zero: it does not
	watch    *time.Timer
}

// owner is the worker of a link.
type owner interface {
	lost(d *delivery)
	died(d *delivery)
	warn(said string, attributes ...any)
	trouble(err error)
	off(command, then string, err error)
	isDraining() bool
	givesBack(count int)
}
