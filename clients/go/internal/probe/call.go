package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

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
		id, err := q.Add(ctx, a.data(), &options)
		if errors.Is(err, dq.ErrExists) || errors.Is(err, dq.ErrNotFound) {
			err = nil
		}
		return orNull(id, err)
	case "rules":
		return rules(ctx, q, a)
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
	return query(ctx, q, method, a)
}

func rules(ctx context.Context, q *dq.Queue, a args) (any, error) {
	made := map[string]dq.NewRule{}
	for name, raw := range a.Rules {
		each, err := read(raw)
		if err != nil {
			return nil, err
		}
		made[name] = dq.NewRule{Every: duration(each.Every), Cron: each.Cron, Data: each.Data, RuleOptions: *each.rule()}
	}
	options := dq.RulesOptions{Prune: a.Prune, AllowEmpty: a.AllowEmpty, DryRun: a.DryRun}
	found, err := q.Rules(ctx, string(a.Program.Base64), made, &options)
	if err != nil {
		return nil, err
	}
	names := func(some []string) []string { return append([]string{}, some...) }
	return fields{
		"added": names(found.Added), "changed": names(found.Changed), "kept": names(found.Kept),
		"removed": names(found.Removed), "unknown": names(found.Unknown),
	}, nil
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
	case "join":
		value, err = join(ctx, q, a)
	default:
		return false, nil, nil
	}
	return true, value, err
}

func newJobs(all []json.RawMessage) ([]dq.NewJob, error) {
	jobs := make([]dq.NewJob, len(all))
	for at, raw := range all {
		each, err := read(raw)
		if err != nil {
			return nil, err
		}
		jobs[at] = dq.NewJob{Data: each.data(), JobOptions: each.job()}
	}
	return jobs, nil
}

func join(ctx context.Context, q *dq.Queue, a args) (any, error) {
	jobs, err := newJobs(append(a.Jobs, a.Then))
	if err != nil {
		return nil, err
	}
	last := len(jobs) - 1
	return orNull(q.Join(ctx, jobs[:last], jobs[last]))
}

func addMany(ctx context.Context, q *dq.Queue, all []json.RawMessage) (any, error) {
	jobs, err := newJobs(all)
	if err != nil {
		return nil, err
	}
	ids, err := q.AddMany(ctx, jobs)
	out := make([]any, len(ids))
	for at, id := range ids {
		out[at], _ = orNull(id, nil)
	}
	return out, err
}
