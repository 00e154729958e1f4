package dq

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Commands for programs that handle jobs without a [Worker], which does all of this.

// PopOptions are the options of [Queue.Pop] and [Queue.BPop].
type PopOptions struct {
	Count int // default: 1
	// ID takes this job, if it is ready. Only for Pop.
	ID string
	// TTR is the length of the lease. Lease is the lease of jobs without a TTR of their own or of their queue. Not
	// both.
	TTR, Lease time.Duration
	// NoAck removes the job at delivery: at-most-once delivery.
	NoAck bool
}

func (o *PopOptions) words() words {
	return words{}.ms("TTR", o.TTR).ms("LEASE", o.Lease).flag("NOACK", o.NoAck).ids(extras)
}

// Delete removes jobs, in any state, and returns how many it removed.
func (q *Queue) Delete(ctx context.Context, ids ...string) (int, error) {
	return q.countByKey(ctx, ids, "DQ.DEL")
}

// DeleteUnreserved is [Queue.Delete] for jobs that no worker has: reserved jobs stay.
func (q *Queue) DeleteUnreserved(ctx context.Context, ids ...string) (int, error) {
	return q.countByKey(ctx, ids, "DQ.DEL", "UNRESERVED")
}

// Cancel removes a job, in any state, and says whether it existed. A handler that works on the job is told: its context
// ends, with the cause [ErrLost].
func (q *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	count, err := q.Delete(ctx, id)
	return count == 1, err
}

// Pop takes up to Count ready jobs of each shard, without waiting.
func (q *Queue) Pop(ctx context.Context, options *PopOptions) ([]Reserved, error) {
	o := cmp.Or(options, &PopOptions{})
	keys, rest := q.keys, words{"COUNT", max(1, o.Count)}
	if o.ID != "" {
		keys, rest = []string{q.key(o.ID)}, words{"ID", o.ID}
	}
	rest = rest.add(o.words()...)
	calls := make([]words, len(keys))
	for at, key := range keys {
		calls[at] = words{"DQ.POP", key}.add(rest...)
	}
	replies, err := q.all(ctx, calls)
	var found []Reserved
	for at, reply := range replies {
		rows := resp.List(reply)
		if o.ID != "" && reply != nil {
			rows = []any{reply}
		}
		found = append(found, q.reservedOf(keys[at], rows)...)
	}
	return found, err
}

// Unblock ends the waits of connections (BPop, BTouch, [Wait]) by the numbers that the server of the queue's first shard
// gave them (CLIENT ID), and returns how many it ended. Only waits of this client's own user are ended, with no job.
func (q *Queue) Unblock(ctx context.Context, clients ...int64) (int, error) {
	if len(clients) == 0 {
		return 0, nil
	}
	node, err := nodeOf(ctx, q.client, q.keys[0])
	if err != nil {
		return 0, err
	}
	call := words{"DQ.UNBLOCK"}
	for _, id := range clients {
		call = call.add(id)
	}
	reply, err := within(ctx, func() (any, error) { return answer(node.Do(ctx, call...)) })
	return int(resp.Int(reply)), err
}

// Ack marks a job as done. It returns false if the token is not the job's current one: another worker has the job, or
// it is gone.
func (q *Queue) Ack(ctx context.Context, id, token string) (bool, error) {
	count, err := q.AckMany(ctx, map[string]string{id: token})
	return count == 1, err
}

// AckResults is [Queue.Ack] for many jobs with results, which the codec encodes. It returns how many were acknowledged.
func (q *Queue) AckResults(ctx context.Context, all ...AckResult) (int, error) {
	byKey, counts := map[string]words{}, map[string]int{}
	for _, each := range all {
		raw, err := encoded(q.codec, each.Result)
		if err != nil {
			return 0, &ResultError{Err: err}
		}
		key := q.key(each.ID)
		if byKey[key] == nil {
			byKey[key] = words{"DQ.ACK", key, "RESULTS", "IDS", 0}
		}
		counts[key]++
		byKey[key][4] = counts[key]
		byKey[key] = byKey[key].add(each.ID, each.Token, raw)
	}
	if len(byKey) == 0 {
		return 0, nil
	}
	return ones(q.all(ctx, slices.Collect(maps.Values(byKey))))
}

// AckResult is a successful delivery and its result, for [Queue.AckResults].
type AckResult struct {
	ID, Token string
	Result    any
}

// AckMany is [Queue.Ack] for many jobs: tokens by ids. It returns how many were acknowledged.
func (q *Queue) AckMany(ctx context.Context, tokens map[string]string) (int, error) {
	keys, groups := q.byShard(slices.Collect(maps.Keys(tokens)))
	calls := make([]words, len(keys))
	for at, key := range keys {
		calls[at] = words{"DQ.ACK", key, "WITHTOKENS", "IDS", len(groups[key])}
		for _, id := range groups[key] {
			calls[at] = calls[at].add(id, tokens[id])
		}
	}
	if len(calls) == 0 {
		return 0, nil
	}
	return ones(q.all(ctx, calls))
}

// ones counts the jobs that were acknowledged.
func ones(replies []any, err error) (count int, _ error) {
	for _, reply := range replies {
		for _, each := range resp.List(reply) {
			count += int(resp.Int(each))
		}
	}
	return count, err
}

// NackMode says how a job is given back.
type NackMode string

const (
	// Fail means that the attempt failed (the default).
	Fail NackMode = "FAIL"
	// Silent means that this delivery does not count.
	Silent NackMode = "SILENT"
	// Fatal means that the job is dead now.
	Fatal NackMode = "FATAL"
)

// NackOptions are the options of [Queue.Nack] and [Queue.NackMany].
type NackOptions struct {
	Mode NackMode
	// Delay is the wait before the next delivery; nil: as the job's backoff says.
	Delay    *time.Duration
	Priority *int
	Reason   string
	// Await, with Silent, is the signal that the job waits for, at most for Delay. After or AfterGroup, with Silent, is
	// what the job waits for, as in [JobOptions]; OnDead is for After.
	Await      string
	After      []string
	AfterGroup string
	OnDead     OnDead
}

func (o *NackOptions) words() words {
	if o == nil {
		return nil
	}
	after := JobOptions{After: o.After, AfterGroup: o.AfterGroup, OnDead: o.OnDead}
	out := words{string(cmp.Or(o.Mode, Fail))}.value("REASON", guard.Clip(o.Reason, reasonBytes), o.Reason != "")
	if o.Delay != nil {
		out = out.add("DELAY", wait("Delay", *o.Delay))
	}
	if o.Priority != nil {
		out = out.add("PRIORITY", priority(*o.Priority))
	}
	return out.value("AWAIT", o.Await, o.Await != "").add(after.after()...)
}

// Nack gives a job back and returns its new state, or "" if the token is not the job's current one.
func (q *Queue) Nack(ctx context.Context, id, token string, options *NackOptions) (string, error) {
	reply, err := q.do(ctx, words{"DQ.NACK", q.key(id), id, "TOKEN", token}.add(options.words()...))
	return resp.Text(reply), err
}

// NackMany is [Queue.Nack] for many jobs: tokens by ids. It returns the new states by ids.
func (q *Queue) NackMany(ctx context.Context, tokens map[string]string, options *NackOptions) (map[string]string, error) {
	return many(q, ctx, "DQ.NACK", tokens, options.words(), resp.Text)
}

// Touch renews a lease: it lasts ttr from now (0: as long as the last one). It returns when the lease expires, or the
// zero time if the token is not the job's current one.
func (q *Queue) Touch(ctx context.Context, id, token string, ttr time.Duration) (time.Time, error) {
	reply, err := q.do(ctx, words{"DQ.TOUCH", q.key(id), id, "TOKEN", token}.ms("TTR", ttr))
	return resp.Time(reply), err
}

// TouchMany is [Queue.Touch] for many jobs: tokens by ids. It returns by ids when the leases expire.
func (q *Queue) TouchMany(ctx context.Context, tokens map[string]string, ttr time.Duration) (map[string]time.Time, error) {
	return many(q, ctx, "DQ.TOUCH", tokens, words{}.ms("TTR", ttr), resp.Time)
}

// SetProgress reports how far a job is, as [Job.Progress] does, and renews its lease. It returns false if the token is
// not the job's current one.
func (q *Queue) SetProgress(ctx context.Context, id, token, text string) (bool, error) {
	return q.correct(ctx, id, token, "PROGRESS", guard.Clip(text, progressBytes))
}

func (q *Queue) correct(ctx context.Context, id, token, word string, value any) (bool, error) {
	reply, err := q.do(ctx, words{"DQ.TOUCH", q.key(id), id, "TOKEN", token, word, value})
	return reply != nil, err
}

// BTouch is [Queue.TouchMany], and then waits for up to timeout while all of these leases are held. It returns as soon
// as one is lost, as by [Queue.Cancel]. All jobs must be in one shard.
func (q *Queue) BTouch(ctx context.Context, timeout time.Duration, tokens map[string]string) (map[string]time.Time, error) {
	keys, groups := q.byShard(slices.Collect(maps.Keys(tokens)))
	if len(keys) != 1 || timeout <= 0 {
		return nil, &ConfigurationError{What: "BTouch needs jobs of one shard, and a timeout"}
	}
	call := words{"DQ.BTOUCH", keys[0], strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64), "IDS", len(tokens)}
	for _, id := range groups[keys[0]] {
		call = call.add(id, tokens[id])
	}
	reply, err := within(ctx, func() (any, error) {
		node, err := q.node(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		// The client's own timeout may be shorter, and would cut the wait off.
		return answer(node.WithTimeout(timeout+slack).Do(context.WithoutCancel(ctx), call...))
	})
	found := make(map[string]time.Time, len(tokens))
	for n, each := range resp.List(reply) {
		found[groups[keys[0]][n]] = resp.Time(each)
	}
	return found, err
}

func many[T any](
	q *Queue, ctx context.Context, command string, tokens map[string]string, options words, read func(any) T,
) (map[string]T, error) {
	keys, groups := q.byShard(slices.Collect(maps.Keys(tokens)))
	calls := make([]words, len(keys))
	for at, key := range keys {
		call := words{command, key, "IDS", len(groups[key])}
		for _, id := range groups[key] {
			call = call.add(id, tokens[id])
		}
		calls[at] = call.add(options...)
	}
	found := make(map[string]T, len(tokens))
	if len(calls) == 0 {
		return found, nil
	}
	replies, err := q.all(ctx, calls)
	for at, reply := range replies {
		for n, each := range resp.List(reply) {
			found[groups[keys[at]][n]] = read(each)
		}
	}
	return found, err
}

// RescheduleOptions are the options of [Queue.Reschedule]: Delay or At, Priority, or both.
type RescheduleOptions struct {
	Delay    *time.Duration
	At       time.Time
	Priority *int
}

// Reschedule gives delayed or ready jobs another due time, another priority, or both. It returns how many jobs it
// found.
func (q *Queue) Reschedule(ctx context.Context, options RescheduleOptions, ids ...string) (int, error) {
	before := words{}.instant("AT", options.At)
	if options.Delay != nil {
		before = before.add("DELAY", wait("Delay", *options.Delay))
	}
	if options.Priority != nil {
		before = before.add("PRIORITY", priority(*options.Priority))
	}
	if len(before) == 0 {
		return 0, &ConfigurationError{What: "Reschedule needs a new Delay, At or Priority"}
	}
	return q.countByKey(ctx, ids, "DQ.RESCHEDULE", before...)
}

// Kick makes dead, done or blocked jobs ready again, and returns how many. A done job loses its result.
func (q *Queue) Kick(ctx context.Context, ids ...string) (int, error) {
	return q.countByKey(ctx, ids, "DQ.KICK")
}

// KickOldest makes the count jobs of each shard that have been dead longest ready again, and returns how many.
func (q *Queue) KickOldest(ctx context.Context, count int) (int, error) {
	return sum(q.each(ctx, "DQ.KICK", "COUNT", between("count", int64(count), "", 1, math.MaxInt64)))
}
