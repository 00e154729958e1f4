package dq

import (
	"context"
	"log/slog"
	"maps"
	"time"
)

// IfExists says what becomes of a job whose id is there already.
type IfExists string

const (
	// Refuse: the new one is not added (the default), so adding twice does no harm.
	Refuse IfExists = ""
	// Replace: whatever is there is replaced.
	Replace IfExists = "REPLACE"
	// OnlyReplace: and where nothing is there, nothing is added.
	OnlyReplace IfExists = "XX"
	// RunAgain: the job runs once more when its current run is over.
	RunAgain IfExists = "NEXT"
)

// Unlimited is for Attempts: no limit, whatever the queue's settings say.
const Unlimited = -1

// NotKept is for Keep: the job goes when it is done, whatever the queue's settings say.
const NotKept = -1

// OnDead says what a job does if one of those that it is after dies.
type OnDead string

const (
	// OnDeadWait: it goes on waiting (the default), as the other one may be kicked. It dies if that one is deleted.
	OnDeadWait OnDead = "WAIT"
	// OnDeadRun: it runs; its results say how they ended.
	OnDeadRun OnDead = "RUN"
	// OnDeadDie: it dies, too.
	OnDeadDie OnDead = "DIE"
)

// JobOptions are for [Queue.Add]. What is not set is the queue's, or the worker's handler's.
type JobOptions struct {
	// ID is unique in the queue; without one the library makes one, which grows with time.
	ID       string
	IfExists IfExists
	// Delay or At is when it is due; without them, now.
	Delay time.Duration
	At    time.Time
	// Priority: smaller is served first.
	Priority int
	// TTR is the length of a lease.
	TTR      time.Duration
	Attempts int
	// Backoff has the waits after the 1st, 2nd, ... failure; an empty one that is not nil: none.
	Backoff []time.Duration
	// TTL: the job vanishes so long after it was added.
	TTL   time.Duration
	Group string
	// Keep: how long it is kept, with its result, after it is done; NotKept: not at all. Without one the queue's settings
	// decide.
	Keep time.Duration
	// Cost is what a delivery of it counts in the queue's rates (1).
	Cost int
	// After: it is blocked until these jobs of its queue have ended. AfterGroup: until that group has no jobs left.
	After      []string
	AfterGroup string
	// OnDead says what becomes of it if one of After dies.
	OnDead OnDead
	// Kind chooses the worker's handler.
	Kind    string
	Headers map[string]string
}

// NewJob is one of those of [Queue.AddMany].
type NewJob struct {
	Data any
	JobOptions
}

// RuleOptions are for [Queue.Every] and [Queue.Cron]. Of a job's options Delay, At and IfExists are not for them.
type RuleOptions struct {
	JobOptions
	// First is the first occurrence of Every; without it, an interval from now.
	First time.Time
	// Zone is an IANA name, for Cron (UTC).
	Zone string
	// Until and Times: when it ends.
	Until time.Time
	Times int
	// Grace: an occurrence that late is skipped.
	Grace time.Duration
	// Jitter: each comes up to so much later.
	Jitter time.Duration
}

// Add adds a job, due now or when the options say. It returns the job's id, or "" where the condition refused it: as a
// rule, because a job of that id is there already.
//
// Data is a []byte, or what the queue's codec makes bytes of: JSON unless the queue says otherwise.
func (q *Queue) Add(ctx context.Context, data any, options *JobOptions) (string, error) {
	call, err := q.adding(ctx, data, options, nil)
	if err != nil {
		return "", err
	}
	reply, err := q.do(ctx, call)
	return added(options, asText(call[2]), reply, err), err
}

// added is the id; a job whose id the library made cannot be refused, only have been added by an earlier sending.
func added(options *JobOptions, id string, reply any, err error) string {
	isOwn := options == nil || options.ID == "" && options.IfExists != OnlyReplace
	if isOwn && reply == nil && err == nil {
		return id
	}
	return asText(reply)
}

// Every makes a job come each interval. Say it again at each start: the same rule goes on as it was.
func (q *Queue) Every(ctx context.Context, interval time.Duration, data any, options *RuleOptions) (string, error) {
	return q.rule(ctx, data, options, words{"EVERY", wait("the interval", interval)})
}

// Cron makes a job come by a cron expression, in the options' Zone. See [Queue.Every].
func (q *Queue) Cron(ctx context.Context, expression string, data any, options *RuleOptions) (string, error) {
	rule := words{"CRON", expression}
	if options != nil {
		rule = rule.value("TZ", options.Zone, options.Zone != "")
	}
	return q.rule(ctx, data, options, rule)
}

func (q *Queue) rule(ctx context.Context, data any, options *RuleOptions, rule words) (string, error) {
	if options == nil || options.ID == "" {
		return "", &ConfigurationError{What: `a recurring job needs an id: &RuleOptions{JobOptions: JobOptions{ID: "report"}}`}
	}
	rule = rule.instant("UNTIL", options.Until).value("TIMES", options.Times, options.Times != 0)
	rule = rule.ms("GRACE", options.Grace).ms("JITTER", options.Jitter)
	job := options.JobOptions
	job.IfExists, job.Delay, job.At = Replace, 0, options.First
	call, err := q.adding(ctx, data, &job, rule)
	if err != nil {
		return "", err
	}
	reply, err := q.do(ctx, call)
	return asText(reply), err
}

func (q *Queue) adding(ctx context.Context, data any, options *JobOptions, rule words) (words, error) {
	if options == nil {
		options = &JobOptions{}
	}
	var id string
	var payload []byte
	var err error
	through(func() (failure error) {
		id, payload, failure = q.made(ctx, data, options)
		return failure
	}, func(failure error) { err = failure })
	if err != nil {
		return nil, err
	}
	call := append(make(words, 0, 8), "DQ.ADD", q.key(id), id, payload) // and two options
	return options.words(call).add(rule...), nil
}

// made are the id and the payload of a job. The codec is called as it is.
func (q *Queue) made(ctx context.Context, data any, o *JobOptions) (string, []byte, error) {
	if o.Delay != 0 && !o.At.IsZero() {
		return "", nil, &ConfigurationError{What: "Delay or At, not both"}
	}
	payload, err := q.payload(ctx, data, o.Kind, o.Headers)
	if err != nil {
		return "", nil, err
	}
	if o.ID != "" {
		return o.ID, payload, nil
	}
	return newID(), payload, nil
}

// words are appended to a call.
func (o *JobOptions) words(call words) words {
	if o.Attempts != 0 {
		call = call.add("ATTEMPTS", max(0, o.Attempts))
	}
	call = call.value("PRIORITY", o.Priority, o.Priority != 0).ms("TTR", o.TTR).ladder(o.Backoff).ms("TTL", o.TTL)
	call = call.value("GROUP", o.Group, o.Group != "").flag(string(o.IfExists), o.IfExists != Refuse)
	if o.Keep == NotKept {
		call = call.add("KEEP", 0)
	} else {
		call = call.ms("KEEP", o.Keep)
	}
	call = call.value("COST", o.Cost, o.Cost != 0).ms("DELAY", o.Delay).instant("AT", o.At)
	return call.add(o.after()...)
}

func (o *JobOptions) after() words {
	var after words
	if len(o.After) > 0 {
		after = words{"AFTER", len(o.After)}.ids(o.After)
	}
	if o.AfterGroup != "" {
		after = after.add("AFTER", "GROUP", o.AfterGroup)
	}
	return after.value("ONDEAD", string(o.OnDead), o.OnDead != "")
}

func (q *Queue) payload(ctx context.Context, data any, kind string, headers map[string]string) ([]byte, error) {
	for _, hooks := range q.hooks {
		if hooks.Adding == nil {
			continue
		}
		changed := make(map[string]string, len(headers)+1)
		maps.Copy(changed, headers)
		failure := door(func() error { hooks.Adding(ctx, q.name, changed); return nil })
		if failure == nil {
			headers = changed
			continue
		}
		report(slog.Default(), slog.LevelError, "dq: a hook failed, adding the job as it was", "hook", "Adding",
			"queue", q.name, "error", failure.Error())
	}
	if kind != "" || len(headers) > 0 {
		return writeEnvelope(data, kind, headers)
	}
	return q.codec.Encode(data)
}
