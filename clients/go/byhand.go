package dq

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A job's life by hand: a [Worker] does all of this.

// PopOptions are for [Queue.Pop] and [Queue.BPop].
type PopOptions struct {
	Count int // 1
	// ID takes that very job, if it is ready. For Pop.
	ID  string
	TTR time.Duration
	// NoAck removes the job at delivery: at most once.
	NoAck bool
}

// Delete removes jobs, in whatever state, and returns how many went.
func (q *Queue) Delete(ctx context.Context, ids ...string) (int, error) {
	return q.countByKey(ctx, ids, func(int) words { return nil }, "DQ.DEL")
}

// DeleteUnreserved is Delete, but not of those at which a worker is.
func (q *Queue) DeleteUnreserved(ctx context.Context, ids ...string) (int, error) {
	return q.countByKey(ctx, ids, func(int) words { return words{"UNRESERVED"} }, "DQ.DEL")
}

// Pop takes ready jobs (of each shard), without waiting.
func (q *Queue) Pop(ctx context.Context, options *PopOptions) ([]Reserved, error) {
	o := or(options, &PopOptions{})
	keys, rest := q.keys, words{"COUNT", max(1, o.Count)}
	if o.ID != "" {
		keys, rest = []string{q.key(o.ID)}, words{"ID", o.ID}
	}
	rest = rest.ms("TTR", o.TTR).flag("NOACK", o.NoAck).add("WITHDUE")
	calls := make([]words, len(keys))
	for at, key := range keys {
		calls[at] = words{"DQ.POP", key}.add(rest...)
	}
	replies, err := q.all(ctx, calls)
	var found []Reserved
	for at, reply := range replies {
		rows := asList(reply)
		if o.ID != "" && reply != nil {
			rows = []any{reply}
		}
		found = append(found, reservedOf(keys[at], rows)...)
	}
	return found, err
}

// BPop waits for ready jobs for up to timeout (0: for ever). Not of a sharded queue in a cluster.
func (q *Queue) BPop(ctx context.Context, timeout time.Duration, options *PopOptions) ([]Reserved, error) {
	o := or(options, &PopOptions{})
	call := words{"DQ.BPOP"}.ids(q.keys).add(strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64))
	call = call.add("COUNT", max(1, o.Count)).ms("TTR", o.TTR).flag("NOACK", o.NoAck).add("WITHDUE")
	if err := call.add(wait("timeout", timeout)).mistake(); err != nil {
		return nil, err
	}
	patience := timeout + slack
	if timeout == 0 {
		patience = -1
	}
	// The client's own timeout may be shorter, and would cut the wait off.
	single, err := q.patient(ctx, patience)
	if err != nil {
		return nil, err
	}
	reply, err := answer(single.Do(ctx, call...).Result())
	pair := asList(reply)
	if len(pair) != 2 {
		return nil, err
	}
	return reservedOf(asText(pair[0]), asList(pair[1])), nil
}

func (q *Queue) patient(ctx context.Context, patience time.Duration) (*redis.Client, error) {
	switch client := q.client.(type) {
	case *redis.Client:
		return client.WithTimeout(patience), nil
	case *redis.ClusterClient:
		if err := client.Do(ctx, "DQ.LEN", q.keys[0]).Err(); err != nil { // it follows a slot that moved
			return nil, err
		}
		node, err := client.MasterForKey(ctx, q.keys[0])
		if err != nil {
			return nil, err
		}
		return node.WithTimeout(patience), nil
	}
	return nil, &ConfigurationError{What: "BPop needs a *redis.Client or a *redis.ClusterClient"}
}

// Ack says that the job is done. False where the token is no longer its current one: somebody else has it, or it is
// gone.
func (q *Queue) Ack(ctx context.Context, id, token string) (bool, error) {
	reply, err := q.do(ctx, words{"DQ.ACK", q.key(id), "WITHTOKENS", id, token})
	return asInt(reply) == 1, err
}

// NackMode is how a job is given back.
type NackMode string

const (
	// Fail: the attempt failed (the default).
	Fail NackMode = "FAIL"
	// Silent: this delivery does not count.
	Silent NackMode = "SILENT"
	// Fatal: the job is dead now.
	Fatal NackMode = "FATAL"
)

// NackOptions are for [Queue.Nack] and [Queue.NackMany].
type NackOptions struct {
	Mode NackMode
	// Delay before the next delivery; nil: what the job's ladder says.
	Delay    *time.Duration
	Priority *int
	Reason   string
}

func (o *NackOptions) words() words {
	if o == nil {
		return nil
	}
	out := words{string(or(o.Mode, Fail))}.value("REASON", o.Reason, o.Reason != "")
	if o.Delay != nil {
		out = out.add("DELAY", wait("Delay", *o.Delay))
	}
	if o.Priority != nil {
		out = out.add("PRIORITY", *o.Priority)
	}
	return out
}

// Nack gives a job back and returns its state, "" where the token is not its current one.
func (q *Queue) Nack(ctx context.Context, id, token string, options *NackOptions) (string, error) {
	reply, err := q.do(ctx, words{"DQ.NACK", q.key(id), id, "TOKEN", token}.add(options.words()...))
	return asText(reply), err
}

// NackMany is [Queue.Nack] for many: tokens by ids. It returns states by ids.
func (q *Queue) NackMany(ctx context.Context, tokens map[string]string, options *NackOptions) (map[string]string, error) {
	return many(q, ctx, "DQ.NACK", tokens, options.words(), asText)
}

// Touch gives a fresh lease from now, as long as the last one (ttr 0), and returns its end; the zero time where the
// token is not the job's current one.
func (q *Queue) Touch(ctx context.Context, id, token string, ttr time.Duration) (time.Time, error) {
	reply, err := q.do(ctx, words{"DQ.TOUCH", q.key(id), id, "TOKEN", token}.ms("TTR", ttr))
	return asTime(reply), err
}

// TouchMany is [Queue.Touch] for many: tokens by ids. It returns the leases' ends by ids.
func (q *Queue) TouchMany(ctx context.Context, tokens map[string]string, ttr time.Duration) (map[string]time.Time, error) {
	return many(q, ctx, "DQ.TOUCH", tokens, words{}.ms("TTR", ttr), asTime)
}

func many[T any](
	q *Queue, ctx context.Context, command string, tokens map[string]string, options words, read func(any) T,
) (map[string]T, error) {
	ids := make([]string, 0, len(tokens))
	for id := range tokens {
		ids = append(ids, id)
	}
	keys, groups := q.byShard(ids)
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
		for n, each := range asList(reply) {
			found[groups[keys[at]][n]] = read(each)
		}
	}
	return found, err
}

// RescheduleOptions are for [Queue.Reschedule]: Delay or At, Priority, or both.
type RescheduleOptions struct {
	Delay    *time.Duration
	At       time.Time
	Priority *int
}

// Reschedule gives delayed or ready jobs another due time, another priority, or both. It returns how many it found.
func (q *Queue) Reschedule(ctx context.Context, options RescheduleOptions, ids ...string) (int, error) {
	before := words{}.instant("AT", options.At)
	if options.Delay != nil {
		before = before.add("DELAY", wait("Delay", *options.Delay))
	}
	if options.Priority != nil {
		before = before.add("PRIORITY", *options.Priority)
	}
	if len(before) == 0 {
		return 0, &ConfigurationError{What: "Reschedule needs a new Delay, At or Priority"}
	}
	return q.countByKey(ctx, ids, func(int) words { return before }, "DQ.RESCHEDULE")
}

// Kick makes dead jobs ready again, and returns how many.
func (q *Queue) Kick(ctx context.Context, ids ...string) (int, error) {
	return q.countByKey(ctx, ids, func(count int) words { return words{"IDS", count} }, "DQ.KICK")
}

// KickOldest makes the longest dead jobs (of each shard) ready again, and returns how many.
func (q *Queue) KickOldest(ctx context.Context, count int) (int, error) {
	return sum(q.each(ctx, "DQ.KICK", "COUNT", count))
}
