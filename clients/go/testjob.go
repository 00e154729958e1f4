package dq

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const mostRuns = 100 // of one job: a handler that sleeps under a new name each time would never end

// TestJob is a job without a server, for tests of handlers:
//
//	err := closeOrder(ctx, dq.TestJob{Data: Order{17}, Attempt: 3}.Job())
//	run, err := dq.TestJob{Data: Order{17}}.Run(ctx, handler)
//
// [Step] runs what it is given, Sleep and WaitSignal end the attempt as always, and what needs a server says so.
type TestJob struct {
	Data    any
	ID      string // default: 1
	Kind    string // of Run, default: that of the only handler
	Headers map[string]string
	Attempt int // default: 1
	// Attempts is how often the job may be delivered (0: without limit), and Backoff the job's own.
	Attempts int
	Backoff  []time.Duration
	// Results say how the jobs ended that it is after.
	Results []TestResult
	// Signals are those that have come, by name.
	Signals map[string]any
	Codec   Codec  // default: JSON
	Queue   string // default: test
}

// TestResult is how a job ended: with the value that its handler returned or, unless it is done, with a text as reason.
type TestResult struct {
	ID      string
	Outcome Outcome
	Value   any
}

// TestRun is what became of a [TestJob].
type TestRun struct {
	// State is Done, Dead, Blocked (it waits for a signal) or Delayed (it was tried 100 times).
	State State
	// JobResult has what its handler returned, as whoever waits for it gets it; Reason is why it failed last.
	JobResult
	Err      error // what its handler returned last
	Attempts int
	// Waits are how long it waited each time: after failures (negative: as the server says), in sleeps, and for signals
	// that did not come.
	Waits []time.Duration
	Jobs  []*Job // of each delivery
}

// Job returns the job, with all its signals. It panics if something of it cannot be encoded.
func (t TestJob) Job() *Job {
	s, err := t.desk(nil)
	if err != nil {
		panic(err)
	}
	maps.Copy(s.steps, s.signals)
	return s.delivery(max(1, t.Attempt)).job
}

// Run runs the handler of the job's kind until the job is done, dead, or waits for a signal.
//
// After a failure it is tried again, as its limits and backoff say, but at once. So is a sleep over, and a wait for a
// signal, if that is among Signals or the wait has a timeout. A handler's own Timeout does not hold.
//
// The error says that no handler takes the job, or what needs a server.
func (t TestJob) Run(ctx context.Context, all ...Handler) (*TestRun, error) {
	made, err := newHandlers(all)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		t.Kind = cmp.Or(t.Kind, all[0].Kind)
	}
	s, err := t.desk(made)
	if err != nil {
		return nil, err
	}
	run := &TestRun{State: Delayed, JobResult: JobResult{ID: s.delivery(1).id, codec: s.queue.codec}}
	for attempt := max(1, t.Attempt); len(run.Jobs) < mostRuns; {
		d := s.delivery(attempt)
		if d.handler == nil {
			what := fmt.Sprintf("no handler for jobs of kind %q", t.Kind)
			if meant := made.nearest(d.shownKind()); meant != "" {
				what += fmt.Sprintf("; did it mean %q?", meant)
			}
			return nil, &ConfigurationError{What: what}
		}
		run.Jobs = append(run.Jobs, d.job)
		v, result, err := d.verdict(guard.Call(func() error { return call(ctx, []*delivery{d}) }))
		if s.lacking != nil {
			return nil, s.lacking
		}
		run.Attempts, run.Err = attempt, err
		wait, isOver := s.ended(d, v, run)
		if run.value = result; isOver {
			return run, nil
		}
		if wait != 0 {
			run.Waits = append(run.Waits, wait)
		}
		if v.way == failed {
			attempt++
		}
	}
	return run, nil
}

// desk answers the handler of a [TestJob] in place of a server.
type desk struct {
	test     TestJob
	queue    *Queue
	handlers *handlers
	payload  []byte
	results  []ending
	signals  map[string][]byte
	steps    map[string][]byte
	lacking  error
}

func (t TestJob) desk(all *handlers) (*desk, error) {
	q := &Queue{name: cmp.Or(t.Queue, "test"), codec: t.Codec}
	if q.codec == nil {
		q.codec = JSON
	}
	q.keys = []string{q.name}
	s := &desk{test: t, queue: q, handlers: all, signals: map[string][]byte{}, steps: map[string][]byte{}}
	q.desk = s
	return s, guard.Call(func() (err error) {
		if s.payload, err = q.payload(context.Background(), t.Data, t.Kind, t.Headers); err != nil {
			return err
		}
		for _, each := range t.Results {
			value := []byte(fmt.Sprint(each.Value))
			if each.Outcome == OutcomeDone {
				if value, err = q.codec.Encode(each.Value); err != nil {
					return err
				}
			}
			s.results = append(s.results, ending{each.ID, each.Outcome, value})
		}
		for name, value := range t.Signals {
			if s.signals[name], err = q.codec.Encode(value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *desk) delivery(attempt int) *delivery {
	now := time.Now()
	r := row{id: cmp.Or(s.test.ID, "1"), payload: s.payload, token: "1", attempt: attempt, due: now, results: s.results, steps: s.steps}
	r.terms = terms{ttr: serverTTR, maxAttempts: s.test.Attempts}
	if waits := s.test.Backoff; len(waits) > 0 {
		r.terms.ladder = &waits[min(attempt, len(waits))-1]
	}
	d := deliveryOf(s.queue, s.queue.name, r)
	d.ctx = context.Background()
	if s.handlers != nil {
		d.handler = s.handlers.choose(d.opened)
	}
	d.job = jobOf(d, now.Add(serverTTR))
	return d
}

// ended notes how an attempt ended, and says how long the job waits then, if it is not over.
func (s *desk) ended(d *delivery, v verdict, run *TestRun) (wait time.Duration, isOver bool) {
	if v.way == suspended {
		run.Attempts--
		return s.suspended(d.waits(), run)
	}
	run.Reason = v.reason
	switch o := settled(d, v); {
	case v.way == succeeded:
		run.State, run.Outcome = Done, OutcomeDone
		return 0, true
	case o.mode == "FATAL":
		run.State, run.Outcome = Dead, OutcomeDead
		return 0, true
	case v.way == snoozed:
		run.Attempts--
		return o.wait, false
	case o.wait == unsaid && d.terms.ladder != nil:
		return *d.terms.ladder, false
	default:
		return o.wait, false
	}
}

// suspended does what the server does, and says how long the job waits, if that is known.
func (s *desk) suspended(until *suspension, run *TestRun) (wait time.Duration, isOver bool) {
	for _, step := range until.before {
		s.steps[step[4]] = []byte(step[5])
	}
	rest := until.rest
	if rest[0] == "AWAIT" {
		value, isSent := s.signals[rest[1]]
		if isSent {
			s.steps[rest[1]] = value
			return 0, false
		}
		if rest = rest[2:]; len(rest) == 0 {
			run.State = Blocked
			return 0, true
		}
	}
	ms, _ := strconv.ParseInt(rest[1], 10, 64) // of a DELAY
	return time.Duration(ms) * time.Millisecond, false
}

func (s *desk) answer(call words) (any, error) {
	switch call[0] {
	case "DQ.STEP":
		s.steps[call[4].(string)] = resp.Bytes(call[5])
		return int64(1), nil
	case "DQ.TOUCH": // progress and a cost, of which nothing depends
		return int64(1), nil
	case "EVAL":
		return nil, s.lacks("Once")
	}
	return nil, s.lacks(fmt.Sprint(call[0]))
}

func (s *desk) lacks(what string) error {
	s.lacking = &ConfigurationError{What: what + " needs a server: see package dqtest"}
	return s.lacking
}

// NewInlineQueue made a queue without a server.
//
// Deprecated: it returns an error. [TestJob] runs handlers without a server, and package dqtest starts one.
func NewInlineQueue(string, ...Handler) (*Queue, error) {
	return nil, &ConfigurationError{
		What: "NewInlineQueue is gone: dq.TestJob runs handlers without a server, and dqtest.Start starts one",
	}
}
