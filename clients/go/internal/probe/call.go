package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

// args are the options of a method, by their names in the command reference.
type args struct {
	ID         string
	IDs        []string
	Token      string
	Tokens     map[string]string
	Data       json.RawMessage
	Payload    json.RawMessage
	Kind       string
	Headers    map[string]string
	Delay      *int64
	At         int64
	Priority   *int
	TTR        int64
	Group      string
	IfExists   string `json:"if_exists"`
	Mode       string
	Reason     string
	Count      int
	Timeout    int64
	NoAck      bool
	State      string
	Cursor     string
	Match      string
	Interval   int64
	Expression string
	TZ         string
	First      int64
	Until      int64
	Since      int64
	Times      int
	Grace      int64
	Jitter     int64
	Buckets    int
	Prefix     *int
	Duration   int64
	Repeat     int
	MaxLen     *int
	Rate       []int64
	Unreserved bool
	After      []string
	OnDead     string `json:"on_dead"`
	AfterGroup string `json:"after_group"`
	Name       string
	Value      any
	Jobs       []json.RawMessage

	said saidArgs
}

func read(raw json.RawMessage) (a args, err error) {
	if raw != nil {
		err = errors.Join(json.Unmarshal(raw, &a), json.Unmarshal(raw, &a.said))
	}
	return a, err
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (a args) data() any {
	if a.Payload == nil {
		return a.Data
	}
	var coded struct{ Base64 string }
	if json.Unmarshal(a.Payload, &coded) == nil {
		raw, _ := base64.StdEncoding.DecodeString(coded.Base64)
		return raw
	}
	var text string
	_ = json.Unmarshal(a.Payload, &text)
	return []byte(text)
}

func (a args) job() dq.JobOptions {
	conditions := map[string]dq.IfExists{"replace": dq.Replace, "only-replace": dq.OnlyReplace, "next": dq.RunAgain}
	options := dq.JobOptions{
		ID: a.ID, IfExists: conditions[a.IfExists], At: instant(a.At), Kind: a.Kind, Headers: a.Headers, After: a.After,
		AfterGroup: a.AfterGroup, OnDead: dq.OnDead(strings.ToUpper(a.OnDead)),
	}
	if a.Delay != nil {
		options.Delay = duration(*a.Delay)
	}
	a.said.say(&options)
	return options
}

func (a args) rule() *dq.RuleOptions {
	return &dq.RuleOptions{
		JobOptions: a.job(), First: instant(a.First), Zone: a.TZ, Until: instant(a.Until), Times: a.Times,
		Grace: duration(a.Grace), Jitter: duration(a.Jitter),
	}
}

func (a args) delay() *time.Duration {
	if a.Delay == nil {
		return nil
	}
	d := duration(*a.Delay)
	return &d
}

func (a args) nack() *dq.NackOptions {
	return &dq.NackOptions{
		Mode: dq.NackMode(strings.ToUpper(a.Mode)), Delay: a.delay(), Priority: a.Priority, Reason: a.Reason,
	}
}

func (a args) many() []dq.NewJob {
	jobs := make([]dq.NewJob, a.Repeat)
	for n := range jobs {
		jobs[n] = dq.NewJob{Data: a.data(), JobOptions: a.job()}
		jobs[n].ID = fmt.Sprintf("%s:%d", a.ID, n)
	}
	return jobs
}

func orNull(text string, err error) (any, error) {
	if text == "" {
		return nil, err
	}
	return text, err
}

func msOf(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UnixMilli()
}

func popped(jobs []dq.Reserved, err error) (any, error) {
	out := []any{}
	for _, job := range jobs {
		out = append(out, fields{
			"id": job.ID, "payload": base64.StdEncoding.EncodeToString(job.Payload), "token": job.Token,
			"attempt": job.Attempt, "deadline": msOf(job.Deadline), "due": msOf(job.Due), "queue": job.Queue,
		})
	}
	return out, err
}

func call(ctx context.Context, q *dq.Queue, method string, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	switch method {
	case "add":
		if a.Repeat > 0 {
			return q.AddMany(ctx, a.many())
		}
		options := a.job()
		return orNull(q.Add(ctx, a.data(), &options))
	case "every":
		return orNull(q.Every(ctx, duration(a.Interval), a.data(), a.rule()))
	case "cron":
		return orNull(q.Cron(ctx, a.Expression, a.data(), a.rule()))
	case "delete":
		if a.Unreserved {
			return q.DeleteUnreserved(ctx, a.IDs...)
		}
		return q.Delete(ctx, a.IDs...)
	case "pop":
		return popped(q.Pop(ctx, &dq.PopOptions{Count: a.Count, ID: a.ID, TTR: duration(a.TTR), NoAck: a.NoAck}))
	case "bpop":
		return popped(q.BPop(ctx, duration(a.Timeout), &dq.PopOptions{Count: a.Count, TTR: duration(a.TTR), NoAck: a.NoAck}))
	case "ack":
		return q.Ack(ctx, a.ID, a.Token)
	case "nack":
		return orNull(q.Nack(ctx, a.ID, a.Token, a.nack()))
	case "nack_many":
		return q.NackMany(ctx, a.Tokens, a.nack())
	case "touch":
		at, err := q.Touch(ctx, a.ID, a.Token, duration(a.TTR))
		return msOf(at), err
	case "touch_many":
		found, err := q.TouchMany(ctx, a.Tokens, duration(a.TTR))
		out := fields{}
		for id, at := range found {
			out[id] = msOf(at)
		}
		return out, err
	case "reschedule":
		return q.Reschedule(ctx, dq.RescheduleOptions{Delay: a.delay(), At: instant(a.At), Priority: a.Priority}, a.IDs...)
	case "kick":
		return q.Kick(ctx, a.IDs...)
	case "kick_oldest":
		return q.KickOldest(ctx, a.Count)
	}
	if isIts, value, err := flow(ctx, q, method, a); isIts {
		return value, err
	}
	return look(ctx, q, method, a)
}

// flow handles the methods for results and for jobs that depend on each other.
func flow(ctx context.Context, q *dq.Queue, method string, a args) (isIts bool, value any, err error) {
	limited := ctx
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, duration(a.Timeout))
		defer cancel()
	}
	switch method {
	case "result":
		if value, err = dq.Result[any](ctx, q, a.ID); errors.Is(err, dq.ErrNotFound) {
			err = nil
		}
	case "wait":
		value, err = dq.Wait[any](limited, q, a.ID)
	case "add_and_wait":
		options := a.job()
		value, err = dq.AddAndWait[any](limited, q, a.data(), &options)
	case "cancel":
		value, err = q.Cancel(ctx, a.ID)
	case "signal":
		value, err = q.Signal(ctx, a.ID, a.Name, a.Value)
		if errors.Is(err, dq.ErrNotFound) {
			value, err = nil, nil
		}
	case "chain":
		jobs := make([]dq.NewJob, len(a.Jobs))
		for at, data := range a.Jobs {
			jobs[at].Data = data
		}
		value, err = q.Chain(ctx, jobs)
	case "add_many":
		value, err = addMany(ctx, q, a.Jobs)
	default:
		return false, nil, nil
	}
	return true, value, err
}

func addMany(ctx context.Context, q *dq.Queue, all []json.RawMessage) (any, error) {
	jobs := make([]dq.NewJob, len(all))
	for at, raw := range all {
		each, err := read(raw)
		if err != nil {
			return nil, err
		}
		jobs[at] = dq.NewJob{Data: each.data(), JobOptions: each.job()}
	}
	ids, err := q.AddMany(ctx, jobs)
	out := make([]any, len(ids))
	for at, id := range ids {
		out[at], _ = orNull(id, nil)
	}
	return out, err
}

func orNothing(err error) (any, error) {
	if errors.Is(err, dq.ErrNotFound) {
		return nil, nil
	}
	return nil, err
}

func totals(t dq.Totals) fields {
	return fields{
		"added": t.Added, "delivered": t.Delivered, "acked": t.Acked, "nacked": t.Nacked, "timed-out": t.TimedOut,
		"died": t.Died, "deleted": t.Deleted, "expired": t.Expired, "missed": t.Missed,
	}
}

func look(ctx context.Context, q *dq.Queue, method string, a args) (any, error) {
	switch method {
	case "get":
		get := q.Get
		if a.Prefix != nil {
			get = func(ctx context.Context, id string) (*dq.JobInfo, error) { return q.GetPrefix(ctx, id, *a.Prefix) }
		}
		job, err := get(ctx, a.ID)
		if err != nil {
			return orNothing(err)
		}
		token, _ := orNull(job.Token, nil)
		return fields{
			"id": job.ID, "payload": base64.StdEncoding.EncodeToString(job.Payload), "state": job.State,
			"priority": job.Priority, "due": msOf(job.Due), "deadline": msOf(job.Deadline), "ttr": job.TTR.Milliseconds(),
			"attempts": job.Attempts, "max_attempts": job.MaxAttempts, "token": token, "reason": job.Reason,
			"payload_bytes": job.PayloadBytes,
		}, err
	case "peek":
		found, err := q.Peek(ctx, dq.State(a.State), &dq.PeekOptions{
			Count: a.Count, Since: instant(a.Since), Until: instant(a.Until), Prefix: a.Prefix,
		})
		out := []any{}
		for _, job := range found {
			out = append(out, fields{
				"id": job.ID, "at": msOf(job.At), "attempts": job.Attempts, "priority": job.Priority,
				"payload_bytes": job.PayloadBytes,
			})
		}
		return out, err
	case "scan":
		next, ids, err := q.Scan(ctx, a.Cursor, &dq.ScanOptions{State: dq.State(a.State), Match: a.Match, Count: a.Count})
		return []any{next, ids}, err
	case "forecast":
		return q.Forecast(ctx, instant(a.Since), instant(a.Until), a.Buckets)
	case "len":
		if a.Group != "" {
			return q.LenGroup(ctx, a.Group)
		}
		return q.Len(ctx, dq.State(a.State))
	case "stats":
		stats, err := q.Stats(ctx)
		if err != nil {
			return orNothing(err)
		}
		return fields{
			"delayed": stats.Delayed, "ready": stats.Ready, "reserved": stats.Reserved, "dead": stats.Dead,
			"next_due": msOf(stats.NextDue), "totals": totals(stats.Totals), "waiting_clients": stats.WaitingClients,
		}, err
	case "next":
		instants, err := q.Next(ctx, a.ID, a.Count)
		if err != nil {
			return orNothing(err)
		}
		out := []any{}
		for _, at := range instants {
			out = append(out, msOf(at))
		}
		return out, err
	case "cfgset":
		settings := dq.Settings{MaxLen: a.MaxLen}
		if a.TTR != 0 {
			ttr := duration(a.TTR)
			settings.TTR = &ttr
		}
		if len(a.Rate) == 2 {
			settings.Rate = &dq.Rate{Jobs: int(a.Rate[0]), Window: duration(a.Rate[1])}
		}
		return nil, q.Configure(ctx, settings)
	case "cfgget":
		settings, err := q.Settings(ctx)
		if err != nil {
			return orNothing(err)
		}
		return fields{"maxlen": *settings.MaxLen, "ttr": settings.TTR.Milliseconds()}, err
	case "pause":
		return nil, q.Pause(ctx, duration(a.Duration))
	case "resume":
		return nil, q.Resume(ctx)
	case "purge":
		return q.Purge(ctx, dq.State(a.State))
	}
	return nil, fmt.Errorf("no method %s", method)
}
