package dq

import (
	"cmp"
	"context"
	"sync"
	"time"
	"unique"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

const kindBytes = 100

// delivery is what the library knows of a job in hand. The handler gets a separate [Job], which it may change freely.
type delivery struct {
	jobKey
	token   string
	attempt int
	due     time.Time
	unknown int // earlier deliveries to workers that did not know the job's kind
	payload []byte
	terms   terms
	results []ending
	source  *Queue
	link    keeper   // nil without a server
	handler *Handler // nil if no handler takes the job
	job     *Job
	ctx     context.Context // the handler's; nil before it began

	opening  sync.Once
	envelope *envelope

	mu         sync.Mutex
	failure    error // the argument of Fail
	isGood     bool  // Succeed was called after the last Fail
	result     any
	told       error
	tell       func(error) // ends the handler's context
	suspension *suspension
	steps      steps

	// Of link.mu.
	isHeld   bool // how the delivery ends is not decided yet
	since    time.Time
	lease    time.Duration
	until    time.Time // when its lease expires by this program's clock; zero: that is not watched
	progress progress
}

func deliveryOf(source *Queue, key string, r row) *delivery {
	return &delivery{
		jobKey: jobKey{key, r.id}, token: r.token, attempt: r.attempt, due: r.due, unknown: r.unknown(), payload: r.payload,
		terms: r.terms, results: r.results, source: source, steps: steps{kept: r.steps},
	}
}

// jobOf makes the Job that the handler is given.
func jobOf(d *delivery, deadline time.Time) *Job {
	return &Job{
		ID: d.id, Queue: d.queue, Payload: d.payload, Token: d.token, Attempt: d.attempt, MaxAttempts: d.limit(),
		Deadline: deadline, Due: d.due, delivery: d,
	}
}

// limit is the least limit that the job, its queue or its handler says; 0: none. Deliveries to workers that did not know
// the kind are no attempts of the handler.
func (d *delivery) limit() int {
	limit := d.terms.maxAttempts
	if d.handler != nil && d.handler.Attempts > 0 {
		ofHandler := d.handler.Attempts + d.unknown
		limit = min(cmp.Or(limit, ofHandler), ofHandler)
	}
	return limit
}

func (d *delivery) opened() *envelope {
	d.opening.Do(func() { d.envelope = readEnvelope(d.payload) })
	return d.envelope
}

// shownKind is the kind for a log or a reason: it may be as long as a payload.
func (d *delivery) shownKind() string {
	if e := d.opened(); e != nil {
		return guard.Clip(e.kind, kindBytes)
	}
	return ""
}

// why returns what the handler was told, or nil.
func (d *delivery) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told
}

// waits returns the suspension that the handler asked for, or nil.
func (d *delivery) waits() *suspension {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suspension
}

func (d *delivery) end(why error) {
	d.mu.Lock()
	tell := d.tell
	first := d.told == nil
	if first {
		d.told = why
	}
	d.mu.Unlock()
	if first && tell != nil {
		tell(why)
	}
}

// keeper is the link that a delivery came by.
type keeper interface {
	at() unique.Handle[place]
	mayBegin(d *delivery) bool
	note(d *delivery, progress string)
	settle(d *delivery, made *outcome)
	giveBack(d *delivery, made *outcome)
	fail(d *delivery, made *outcome) (wasHeld bool)
	lose(d *delivery) (wasHeld bool)
	wake()
}

// outcome is what the server is to be told of a delivery that ended.
type outcome struct {
	of         *delivery
	mode       string // of a NACK; "": an ACK
	wait       time.Duration
	reason     string
	result     []byte      // of an ACK; nil: none
	ahead      [][]string  // commands that are sent before it, and whose replies do not count
	suspension *suspension // instead of all of these
	isOwnWait  bool        // the wait is the library's, not the handler's
	cuts       int         // how often the connection was cut instead of a reply
	wasSent    bool        // sent, and the connection was lost before the reply
	isRefused  bool
}

func (d *delivery) content() (Codec, []byte) { return d.source.codec, d.payload }

func (d *delivery) endings() []ending { return d.results }

func (d *delivery) says(failure error, result any, isGood bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure, d.result, d.isGood = failure, result, isGood
}
