package dq

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

const (
	mostDeaths   = 1000 // that wait for the hook
	mostKnown    = 10_000
	setBackMs    = 1000 // from so much on a server's clock that is behind was set back
	deathsAtOnce = 100
	usualLook    = time.Minute // where no lease is said
	shortestLook = time.Second
)

// byTime are reasons of the server. All others were said in a NACK, whose sender heard of the death.
var byTime = regexp.MustCompile(`(?s)^(lease ended|after .*: (dead|deleted|expired))$`)

// deaths tells the hook Dead of jobs that have died: those of which an answer said so, and those that time or another job
// ended, which it looks for at the server. One goroutine reads each job just before it calls the hook, which holds up
// nothing else.
type deaths struct {
	mourner
	hooks    []func(ctx context.Context, queue string, job *JobInfo)
	places   []*deathPlace
	every    time.Duration
	answered chan death
	lost     atomic.Int64 // answers that found no room: the next look takes those that were said in a NACK, too
	ending   chan struct{}
	ended    chan struct{}

	// Of the goroutine.
	ctx    context.Context
	cancel context.CancelFunc
	begun  time.Time
	lookAt time.Time
	mayNot bool // look
}

// deathPlace is a key. Instants are the server's, in milliseconds.
type deathPlace struct {
	queue *Queue
	key   string
	from  int64
	known map[string]known // deaths since from, by id

	// When the last look began, by the server's clock and by ours; at first not yet.
	began   int64
	beganAt time.Time
}

type known struct {
	at       int64
	isCalled bool // or it is gone
}

// death is the first of the ids that is dead: an occurrence of a recurring job is a dead job of its own.
type death struct {
	place   *deathPlace
	ids     []string
	isFound bool // by a look
}

// mourner is the worker.
type mourner interface {
	off(command, then string, err error)
	warn(said string, attributes ...any)
	hook(name string, hook func())
}

// newDeaths returns nil if no hook wants to know. lease: how often to look; 0: not said.
func newDeaths(of mourner, hooks []Hooks, lease time.Duration, queues []*Queue) *deaths {
	made := &deaths{
		mourner: of, every: max(cmp.Or(lease, usualLook), shortestLook), answered: make(chan death, mostDeaths),
		ending: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, queue := range queues {
		for _, key := range queue.keys {
			made.places = append(made.places, &deathPlace{queue: queue, key: key, known: map[string]known{}})
		}
	}
	for _, each := range hooks {
		if each.Dead != nil {
			made.hooks = append(made.hooks, each.Dead)
		}
	}
	if len(made.hooks) == 0 {
		return nil
	}
	return made
}

// --- What others call

// answer takes a delivery of which an answer said that the job is dead.
func (d *deaths) answer(of *delivery) {
	if d == nil {
		return
	}
	for _, place := range d.places {
		if place.queue != of.source || place.key != of.queue {
			continue
		}
		select {
		case d.answered <- death{place: place, ids: []string{fmt.Sprintf("%s@%d", of.id, of.due.UnixMilli()), of.id}}:
		default:
			d.lost.Add(1)
		}
	}
}

func (d *deaths) start(ctx context.Context) {
	if d != nil {
		d.begin(ctx)
		go d.run()
	}
}

func (d *deaths) begin(ctx context.Context) {
	if d != nil {
		d.ctx, d.cancel = context.WithCancel(ctx)
		if d.begun.IsZero() {
			d.begun = time.Now()
		}
	}
}

// end tells what waits by that time, or until a second stop. The rest is left behind.
func (d *deaths) end(by time.Time, stops <-chan struct{}) {
	if d == nil {
		return
	}
	defer d.cancel()
	close(d.ending)
	said := "dq: stopped without the hook Dead, which has not returned: jobs that died may not be told"
	select {
	case <-d.ended:
		if d.lost.Load() == 0 {
			return
		}
		said = "dq: stopped before the hook Dead was called with all jobs that died"
	case <-time.After(time.Until(by)):
	case <-stops:
	}
	d.warn(said, "waiting", int64(len(d.answered))+d.lost.Load())
}

// drain is for tests: it tells of all that have died since begin was called first.
func (d *deaths) drain() {
	if d != nil {
		d.tellAnswered()
		d.look()
		d.cancel()
	}
}

// --- The goroutine

func (d *deaths) run() {
	defer close(d.ended)
	for !isClosed(d.ending) {
		wait := d.every
		if !d.mayNot {
			if time.Now().After(d.lookAt) {
				d.look()
			}
			wait = time.Until(d.lookAt)
		}
		select {
		case each := <-d.answered:
			d.tell(each)
		case <-time.After(wait):
		case <-d.ending:
		}
	}
	d.tellAnswered()
}

func (d *deaths) tellAnswered() {
	for {
		select {
		case each := <-d.answered:
			d.tell(each)
		default:
			return
		}
	}
}

// tell calls the hook with a job that is still dead.
func (d *deaths) tell(each death) {
	for _, id := range each.ids {
		reply, err := each.place.queue.insist(d.ctx, words{"DQ.GET", each.place.key, id}, d.ctx.Err)
		if trouble.IsForbidden(err) {
			d.off("DQ.GET", "the hook Dead is not called", err)
		}
		if job := jobInfoOf(resp.Map(reply), each.place.queue.codec); err == nil && job.State == Dead {
			d.call(each, job)
			return
		}
	}
}

func (d *deaths) call(each death, job *JobInfo) {
	now := known{job.Failed.UnixMilli(), true}
	if each.place.known[job.ID] == now || each.isFound && !byTime.MatchString(job.Reason) {
		return
	}
	if len(each.place.known) < mostKnown {
		each.place.known[job.ID] = now
	}
	for _, dead := range d.hooks {
		d.hook("Dead", func() { dead(d.ctx, each.place.queue.name, job) })
	}
}

// --- Deaths that are found

// look finds what has died since the last look, and some time before: a busy server finds some deaths late.
func (d *deaths) look() {
	lost := d.lost.Swap(0)
	defer func() { d.lookAt = time.Now().Add(d.every) }()
	for _, place := range d.places {
		if !d.lookAtAll(place, lost > 0) {
			d.lost.Add(lost)
			return
		}
	}
}

// lookAtAll says whether nothing came between.
func (d *deaths) lookAtAll(place *deathPlace, wasLost bool) bool {
	now, err := d.locate(place)
	command := "TIME"
	for err == nil {
		command = "DQ.PEEK"
		count := deathsAtOnce + len(place.known)
		var reply any
		look := words{command, place.key, "DEAD", "FROM", place.from, "COUNT", count, "PREFIX", 0}
		reply, err = place.queue.insist(d.ctx, look, d.isOver)
		found := peekedOf(resp.List(reply))
		for _, each := range found {
			if d.tellAnswered(); isClosed(d.ending) {
				return false
			}
			d.tellFound(place, each.ID, each.At.UnixMilli(), wasLost)
		}
		switch {
		case err != nil:
		case len(found) < count:
			place.lookFrom(now - d.every.Milliseconds())
			return true
		case len(place.known) > mostKnown:
			place.lookFrom(found[len(found)-1].At.UnixMilli())
		}
	}
	if d.mayNot = trouble.IsForbidden(err); d.mayNot {
		d.off(command, "the hook Dead does not hear of jobs that died with their lease", err)
	}
	return false
}

// isOver says why a look ends.
func (d *deaths) isOver() error {
	if isClosed(d.ending) {
		return ErrStopping
	}
	return d.ctx.Err()
}

// tellFound tells of a death that was not found before. After a loss all are looked at that the hook was not called with.
func (d *deaths) tellFound(place *deathPlace, id string, at int64, wasLost bool) {
	if before, has := place.known[id]; !has || before.at != at || wasLost && !before.isCalled {
		d.tell(death{place, []string{id}, !wasLost})
		place.known[id] = known{at, wasLost || place.known[id] == known{at, true}}
	}
}

// lookFrom forgets what is not looked for again.
func (p *deathPlace) lookFrom(ms int64) {
	p.from = max(p.from, ms)
	for id, each := range p.known {
		if each.at < p.from {
			delete(p.known, id)
		}
	}
}

// locate learns the server's time, or that of its clock for tests, and at first when the worker began. After a failover
// the clock may be behind.
func (d *deaths) locate(place *deathPlace) (now int64, err error) {
	for tries := 1; ; tries++ {
		if now, err = place.serverMs(d.ctx); err == nil {
			break
		}
		if over := d.isOver(); over != nil || !passes(err) {
			return 0, cmp.Or(over, err)
		}
		select {
		case <-time.After(trouble.Pause(tries)):
		case <-d.ending:
		}
	}
	place.lookAt(now, time.Now(), d.begun)
	return now, nil
}

// lookAt says since when a look counts that begins now by the server's clock, at the given time by ours.
func (p *deathPlace) lookAt(now int64, at, begun time.Time) {
	behind := p.began + at.Sub(p.beganAt).Milliseconds() - now
	switch {
	case p.beganAt.IsZero():
		p.from = now - at.Sub(begun).Milliseconds()
	case behind > setBackMs || now < p.from: // by this clock, the last look began earlier
		p.from = max(0, min(p.from, p.began-max(0, behind)))
	}
	p.began, p.beganAt = now, at
}

func (p *deathPlace) serverMs(ctx context.Context) (int64, error) {
	node, err := p.queue.node(ctx, p.key)
	if err != nil {
		return 0, err
	}
	if ofTests, err := node.Do(ctx, "DQ.CLOCK", "GET").Int64(); err == nil {
		return ofTests, nil
	}
	now, err := node.Time(ctx).Result()
	return now.UnixMilli(), err
}
