package dq

import (
	"context"
	"math"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Rate allows at most Jobs jobs, weighted by their cost, in any window of time.
type Rate struct {
	Jobs   int
	Window time.Duration
}

// Settings are a queue's settings. For [Queue.Configure], a nil field stays as it is, and 0 turns a limit off.
// [Queue.Settings] returns all of them.
type Settings struct {
	TTR      *time.Duration
	Attempts *int
	Backoff  []time.Duration // empty but not nil: no backoff
	// BackoffDefault takes the queue's own backoff away, so that the server's holds.
	BackoffDefault bool
	MaxLen         *int
	MaxBytes       *int
	DeadLen        *int
	Dedupe         *time.Duration
	MaxReserved    *int
	Rate           *Rate
	GroupMax       *int
	GroupRate      *Rate
	GroupFIFO      *bool
	// DoneLen, DoneTTL and DoneBytes limit which done jobs are kept, with their results.
	DoneLen   *int
	DoneTTL   *time.Duration
	DoneBytes *int
	History   *int // how many failed attempts each job keeps, at most 100
}

// Configure sets the settings that are not nil, on each shard. It creates the queue if it does not exist.
func (q *Queue) Configure(ctx context.Context, s Settings) error {
	out := words{}.ladder(s.Backoff).value("BACKOFF", "DEFAULT", s.BackoffDefault)
	for _, each := range []struct {
		name  string
		value *time.Duration
	}{{"TTR", s.TTR}, {"DEDUPE", s.Dedupe}, {"DONETTL", s.DoneTTL}} {
		if each.value != nil {
			out = out.add(each.name, wait(each.name, *each.value))
		}
	}
	for _, each := range []struct {
		name  string
		value *int
		most  int64
	}{
		{"ATTEMPTS", s.Attempts, math.MaxUint32}, {"MAXLEN", s.MaxLen, math.MaxInt64}, {"MAXBYTES", s.MaxBytes, math.MaxInt64},
		{"DEADLEN", s.DeadLen, math.MaxInt64}, {"MAXRESERVED", s.MaxReserved, math.MaxInt64},
		{"GROUPMAX", s.GroupMax, math.MaxInt64}, {"DONELEN", s.DoneLen, math.MaxInt64},
		{"DONEBYTES", s.DoneBytes, math.MaxInt64}, {"HISTORY", s.History, 100},
	} {
		if each.value != nil {
			out = out.add(each.name, between(each.name, int64(*each.value), "", 0, each.most))
		}
	}
	out = out.rate("RATE", s.Rate).rate("GROUPRATE", s.GroupRate)
	if s.GroupFIFO != nil {
		out = out.add("GROUPFIFO", *s.GroupFIFO)
	}
	_, err := q.each(ctx, "DQ.CFGSET", out...)
	return err
}

func (w words) rate(name string, r *Rate) words {
	if r == nil {
		return w
	}
	return w.add(name, between("the jobs of "+name, int64(r.Jobs), "", 0, math.MaxUint32), wait("the window of "+name, r.Window))
}

// Settings returns the queue's settings (of its first shard). The error is [ErrNotFound] if the queue does not exist.
func (q *Queue) Settings(ctx context.Context) (*Settings, error) {
	reply, err := found(q.do(ctx, words{"DQ.CFGGET", q.keys[0]}))
	if err != nil {
		return nil, err
	}
	fields := resp.Map(reply)
	number := func(name string) *int { n := int(resp.Int(fields[name])); return &n }
	duration := func(name string) *time.Duration { d := resp.Duration(fields[name]); return &d }
	rate := func(name string) *Rate {
		if pair := resp.List(fields[name]); len(pair) == 2 {
			return &Rate{int(resp.Int(pair[0])), resp.Duration(pair[1])}
		}
		return &Rate{}
	}
	isFIFO := resp.Int(fields["groupfifo"]) == 1
	backoff := resp.Durations(fields["backoff"])
	isDefault := len(backoff) == 0
	if isDefault {
		backoff = nil
	} else if backoff[0] == 0 { // so BACKOFF 0 is shown
		backoff = []time.Duration{}
	}
	return &Settings{
		TTR: duration("ttr"), Attempts: number("attempts"), Backoff: backoff, BackoffDefault: isDefault, MaxLen: number("maxlen"),
		MaxBytes: number("maxbytes"), DeadLen: number("deadlen"), Dedupe: duration("dedupe"),
		MaxReserved: number("maxreserved"), Rate: rate("rate"), GroupMax: number("groupmax"), GroupRate: rate("grouprate"),
		GroupFIFO: &isFIFO, DoneLen: number("donelen"), DoneTTL: duration("donettl"), DoneBytes: number("donebytes"),
		History: number("history"),
	}, nil
}

// Pause stops deliveries for a duration, or (0) until [Queue.Resume].
func (q *Queue) Pause(ctx context.Context, d time.Duration) error {
	var rest words
	if d != 0 {
		rest = words{wait("a pause", d)}
	}
	_, err := q.each(ctx, "DQ.PAUSE", rest...)
	return err
}

// Resume ends a pause.
func (q *Queue) Resume(ctx context.Context) error {
	_, err := q.each(ctx, "DQ.RESUME")
	return err
}

// Purge removes all jobs in a state, or with [All] in any state, and returns how many.
func (q *Queue) Purge(ctx context.Context, state State) (int, error) {
	return sum(q.each(ctx, "DQ.PURGE", string(state)))
}
