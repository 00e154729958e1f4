package dq

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Unlimited, as Attempts, means no limit, whatever the queue's settings say.
const Unlimited = -1

// NotKept, as Keep, removes the job when it is done, whatever the queue's settings say.
const NotKept = -1

const labelBytes = 256

// NewJob is one job of [Queue.AddMany].
type NewJob struct {
	Data any
	JobOptions
}

// RuleOptions are the options of [Queue.Every] and [Queue.Cron]. Delay, At and IfExists of JobOptions must
// not be set.
type RuleOptions struct {
	JobOptions
	// First is the first occurrence of Every; the default is one interval from now.
	First time.Time
	// TZ is the IANA name of Cron's time zone (default UTC).
	TZ string
	// Until and Times limit the rule: no occurrence after Until, and at most Times occurrences.
	Until time.Time
	Times int
	// Grace: an occurrence that is not delivered within Grace of its due time is skipped.
	Grace time.Duration
	// Jitter delays each occurrence by up to this time.
	Jitter time.Duration
}

// Add adds a job, due now or when the options say, and returns its id. The error is [ErrExists] if a job with that id is
// there, and [ErrNotFound] if none is that [OnlyReplace] could replace: then nothing was added.
//
// Data is a []byte, or a value that the queue's codec encodes (default: JSON).
func (q *Queue) Add(ctx context.Context, data any, options *JobOptions) (string, error) {
	call, err := q.adding(ctx, data, options, nil)
	if err != nil {
		return "", err
	}
	reply, err := q.do(ctx, call)
	if options != nil {
		err = q.namingUnknown(ctx, err, options.After)
	}
	if err != nil {
		return "", err
	}
	return orRefused(options, added(options, resp.Text(call[2]), reply, nil))
}

// orRefused makes the error for a job whose condition has refused it.
func orRefused(options *JobOptions, id string) (string, error) {
	switch {
	case id != "":
		return id, nil
	case options.IfExists == OnlyReplace:
		return "", ErrNotFound
	}
	return "", ErrExists
}

// namingUnknown makes the error for jobs that come after some that the queue does not hold: it names those, and says
// what to do.
func (q *Queue) namingUnknown(ctx context.Context, err error, after []string) error {
	if !strings.Contains(resp.Said(err), unheld) {
		return err
	}
	ids := once(after)
	calls := make([]words, len(ids))
	for at, id := range ids {
		calls[at] = words{"DQ.GET", q.key(id), id, "PREFIX", 0}
	}
	found, failure := q.all(ctx, calls)
	var missing []string
	for at, reply := range found {
		if reply == nil {
			missing = append(missing, ids[at])
		}
	}
	if failure != nil || len(missing) == 0 {
		return err // nobody can say which
	}
	return fmt.Errorf("dq: After names %s, which the queue does not hold: it has ended, or was never added. Add jobs and those "+
		"after them in one call (AddMany, Chain), or with a Keep: %w", someOf(missing), err)
}

// added returns the job's id, or "" where it was refused. A job whose id the library made cannot be refused: a nil
// reply means that an earlier sending of the same command has added it.
func added(options *JobOptions, id string, reply any, err error) string {
	isOwn := options == nil || options.ID == "" && options.IfExists != OnlyReplace
	if isOwn && reply == nil && err == nil {
		return id
	}
	return resp.Text(reply)
}

// Every adds a job that recurs at an interval. Call it at each start of the program: with an unchanged rule, the job
// goes on as it was. The options need an ID.
func (q *Queue) Every(ctx context.Context, interval time.Duration, data any, options *RuleOptions) (string, error) {
	return q.rule(ctx, data, options, words{"EVERY", between("interval", resp.Ms(interval), " ms", 1, latest)})
}

// Cron adds a job that recurs by a cron expression, in the options' TZ. See [Queue.Every].
func (q *Queue) Cron(ctx context.Context, expression string, data any, options *RuleOptions) (string, error) {
	rule := words{"CRON", expression}
	if options != nil {
		rule = rule.value("TZ", options.TZ, options.TZ != "")
	}
	return q.rule(ctx, data, options, rule)
}

func (q *Queue) rule(ctx context.Context, data any, options *RuleOptions, rule words) (string, error) {
	call, err := q.ruleCall(ctx, data, options, rule)
	if err != nil {
		return "", err
	}
	reply, err := q.do(ctx, call)
	return resp.Text(reply), err
}

// limits appends what limits a rule.
func (o *RuleOptions) limits(rule words) words {
	rule = rule.instant("UNTIL", o.Until).value("TIMES", between("times", int64(o.Times), "", 1, math.MaxInt64), o.Times != 0)
	return rule.ms("GRACE", o.Grace).ms("JITTER", o.Jitter)
}

func (q *Queue) ruleCall(ctx context.Context, data any, options *RuleOptions, rule words) (words, error) {
	if options == nil || options.ID == "" {
		return nil, &ConfigurationError{What: `a recurring job needs an id: &RuleOptions{JobOptions: JobOptions{ID: "report"}}`}
	}
	if err := checkID(options.ID); err != nil {
		return nil, err
	}
	if options.Delay != 0 || !options.At.IsZero() || options.IfExists != Refuse {
		return nil, &ConfigurationError{
			What: "a recurring job takes neither Delay nor At nor IfExists: its rule says when it is due (First, for Every)",
		}
	}
	job := options.JobOptions
	job.IfExists, job.Delay, job.At = Replace, 0, options.First
	return q.adding(ctx, data, &job, options.limits(rule))
}

func (q *Queue) adding(ctx context.Context, data any, options *JobOptions, rule words) (words, error) {
	if options == nil {
		options = &JobOptions{}
	}
	var id string
	var payload []byte
	var err error
	guard.Run(func() (failure error) {
		id, payload, failure = q.made(ctx, data, options)
		return failure
	}, func(failure error) { err = failure })
	if err != nil {
		return nil, err
	}
	call := append(make(words, 0, 8), "DQ.ADD", q.key(id), id, payload) // room for two options
	return options.words(call).add(rule...), nil
}

// made returns the id and the payload of a job. It calls the codec unguarded: its callers use [guard.Run].
func (q *Queue) made(ctx context.Context, data any, o *JobOptions) (string, []byte, error) {
	if o.Delay != 0 && !o.At.IsZero() {
		return "", nil, &ConfigurationError{What: "Delay or At, not both"}
	}
	payload, err := q.payload(ctx, data, o.Kind, o.Headers)
	if err != nil {
		return "", nil, err
	}
	id, err := q.idFor(o)
	return id, payload, err
}

// idFor returns the job's id, or makes one. A job is in the shard of the jobs that it is after.
func (q *Queue) idFor(o *JobOptions) (string, error) {
	if o.ID != "" {
		if err := checkID(o.ID); err != nil {
			return "", err
		}
	}
	if o.AfterGroup != "" && q.shards > 1 {
		return "", &ConfigurationError{What: "AfterGroup does not work in a sharded queue: each shard has a group of that name"}
	}
	if len(o.After) == 0 || q.shards <= 1 {
		return cmp.Or(o.ID, newID()), nil
	}
	id := o.ID
	if id == "" {
		id = q.idIn(q.key(o.After[0]), newID())
	}
	for _, other := range o.After {
		if q.key(other) == q.key(id) {
			continue
		}
		if o.ID == "" {
			return "", &ConfigurationError{What: "a job cannot be after jobs of different shards"}
		}
		return "", &ConfigurationError{
			What: fmt.Sprintf("job %s must be in the shard of the jobs that it is after: leave its id out", id),
		}
	}
	return id, nil
}

func priority(n int) any { return between("priority", int64(n), "", math.MinInt32, math.MaxInt32) }

// words appends the options to a call.
func (o *JobOptions) words(call words) words {
	isLabel := o.Label == "" && o.Kind != "" && len(o.Kind) <= labelBytes && utf8.ValidString(o.Kind)
	call = o.said(call).value("LABEL", o.Kind, isLabel).flag(string(o.IfExists), o.IfExists != Refuse).ms("DELAY", o.Delay).instant("AT", o.At)
	return call.add(o.after()...)
}

func (o *JobOptions) after() words {
	var after words
	if len(o.After) > 0 {
		after = words{"AFTER", between("after", int64(len(o.After)), " jobs", 1, 1000)}.ids(o.After)
	}
	if o.AfterGroup != "" {
		after = after.add("AFTER", "GROUP", named("aftergroup", o.AfterGroup))
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
		failure := guard.Call(func() error { hooks.Adding(ctx, q.name, changed); return nil })
		if failure == nil {
			headers = changed
			continue
		}
		guard.Log(slog.Default(), slog.LevelError, "dq: a hook failed, adding the job as it was", "hook", "Adding",
			"queue", q.name, "error", failure.Error())
	}
	if kind != "" || len(headers) > 0 {
		return writeEnvelope(data, kind, headers)
	}
	return q.codec.Encode(data)
}
