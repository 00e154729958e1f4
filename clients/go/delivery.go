package dq

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

// delivery is what the library knows of a job in hand. The handler gets a separate [Job], which it may change freely.
type delivery struct {
	jobKey
	token   string
	attempt int
	unknown int // earlier deliveries to workers that did not know the job's kind
	payload []byte
	terms   terms
	results []ending
	source  *Queue
	link    *link    // nil without a server
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
		jobKey: jobKey{key, r.id}, token: r.token, attempt: r.attempt, unknown: r.unknown(), payload: r.payload, terms: r.terms,
		results: r.results, source: source, steps: steps{kept: r.steps},
	}
}

// jobKey names a job on one server.
type jobKey struct{ queue, id string }

// terms are the job's own terms, or else those of its queue's settings.
type terms struct {
	ttr         time.Duration
	maxAttempts int
	ladder      *time.Duration // the wait after a failure of this delivery; nil: neither the job nor its queue has a backoff
}

// jobOf makes the Job that the handler is given.
func jobOf(d *delivery, deadline, due time.Time) *Job {
	return &Job{
		ID: d.id, Queue: d.queue, Payload: d.payload, Token: d.token, Attempt: d.attempt, MaxAttempts: d.limit(),
		Deadline: deadline, Due: due, delivery: d,
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

// verdict returns what the handler's return means for this job of its batch, the job's result and its error.
func (d *delivery) verdict(err error) (verdict, []byte, error) {
	d.mu.Lock()
	suspension, result := d.suspension, d.result
	switch {
	case d.failure != nil:
		err = d.failure
	case d.isGood && d.handler.DoBatch != nil: // whatever becomes of the others
		err = nil
	}
	d.mu.Unlock()
	if suspension != nil {
		return verdict{way: suspended, wait: unsaid}, nil, ErrSuspended
	}
	var raw []byte
	if err == nil && result != nil {
		failure := guard.Call(func() (failure error) { raw, failure = encoded(d.source.codec, result); return failure })
		if failure != nil {
			raw, err = nil, &ResultError{Err: failure}
		} else if len(raw) > resultBytes {
			raw, err = nil, &ResultError{Err: errors.New(unstorable(len(raw))), isTooLarge: true}
		}
	}
	return judge(err, d), raw, err
}

// contextOf makes the context of a batch's handler: it ends when the handler was told of all its jobs.
func contextOf(parent context.Context, batch []*delivery) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	var mu sync.Mutex
	left := len(batch)
	tell := func(why error) {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			cancel(why)
		}
	}
	for _, d := range batch {
		d.mu.Lock()
		d.tell = tell
		told := d.told
		d.mu.Unlock()
		if told != nil { // told before tell was set
			tell(told)
		}
	}
	return ctx, cancel
}
