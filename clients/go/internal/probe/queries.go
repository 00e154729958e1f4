package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

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

func historyOf(job *dq.JobInfo) []any {
	out := []any{}
	for _, each := range job.History {
		out = append(out, fields{
			"attempts": each.Attempts, "started": msOf(each.Started), "ended": msOf(each.Ended), "how": each.How,
			"reason": each.Reason,
		})
	}
	return out
}

func groupStats(found *dq.GroupStats, err error) (any, error) {
	if err != nil {
		return orNothing(err)
	}
	out := fields{
		"weight": found.Weight, "max": found.Max, "maxlen": found.MaxLen, "paused": found.Paused,
		"waiting": found.Waiting, "reserved": found.Reserved, "rate_used": found.RateUsed,
	}
	if found.Rate != nil {
		out["rate"] = []any{found.Rate.Jobs, found.Rate.Window.Milliseconds()}
	}
	return out, nil
}

func query(ctx context.Context, q *dq.Queue, method string, a args) (any, error) {
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
			"payload_bytes": job.PayloadBytes, "history": historyOf(job),
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
		next, ids, err := q.Scan(ctx, a.Cursor, &dq.ScanOptions{
			State: dq.State(a.State), Match: a.Match, Count: a.Count, Label: a.Label, Awaits: a.Awaits, Reason: a.Reason,
			Recurring: a.Recurring, Group: a.Group,
		})
		return []any{next, ids}, err
	case "forecast":
		return q.Forecast(ctx, instant(a.Since), instant(a.Until), a.Buckets)
	case "len":
		if a.Group != "" {
			return q.LenOfGroup(ctx, a.Group)
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
	case "explain":
		found, err := q.Explain(ctx)
		if a.ID != "" {
			found, err = q.ExplainJob(ctx, a.ID)
		}
		if err != nil {
			return orNothing(err)
		}
		out := []any{}
		for _, each := range found {
			out = append(out, fields{"code": each.Code, "number": each.Number, "until": msOf(each.Until)})
		}
		return out, err
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
	case "configure":
		settings := dq.Settings{MaxLen: a.MaxLen, History: a.History, BackoffDefault: a.BackoffDefault, Backoff: a.job().Backoff}
		if a.TTR != 0 {
			ttr := duration(a.TTR)
			settings.TTR = &ttr
		}
		if len(a.Rate) == 2 {
			settings.Rate = &dq.Rate{Jobs: int(a.Rate[0]), Window: duration(a.Rate[1])}
		}
		return nil, q.Configure(ctx, settings)
	case "settings":
		settings, err := q.Settings(ctx)
		if err != nil {
			return orNothing(err)
		}
		return fields{"maxlen": *settings.MaxLen, "ttr": settings.TTR.Milliseconds()}, err
	case "group_set":
		settings := dq.GroupSettings{Weight: a.Weight, Max: a.Max, MaxLen: a.MaxLen}
		if len(a.Rate) == 2 {
			settings.Rate = &dq.Rate{Jobs: int(a.Rate[0]), Window: duration(a.Rate[1])}
		}
		return q.Group(a.Group).Set(ctx, settings)
	case "group_clear":
		return q.Group(a.Group).Clear(ctx)
	case "group_pause":
		return q.Group(a.Group).Pause(ctx, duration(a.Duration))
	case "group_resume":
		return q.Group(a.Group).Resume(ctx)
	case "group_stats":
		return groupStats(q.Group(a.Group).Stats(ctx))
	case "pause":
		return nil, q.Pause(ctx, duration(a.Duration))
	case "resume":
		return nil, q.Resume(ctx)
	case "purge":
		return q.Purge(ctx, dq.State(a.State))
	}
	return nil, fmt.Errorf("no method %s", method)
}
