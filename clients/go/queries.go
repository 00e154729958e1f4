package dq

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Get returns everything about a job. The error is [ErrNotFound] if it does not exist.
func (q *Queue) Get(ctx context.Context, id string) (*JobInfo, error) {
	return q.get(ctx, words{"DQ.GET", q.key(id), id})
}

// GetPrefix is as [Queue.Get], with only so many bytes of the payload, the next one, the result, and values of results
// and steps.
func (q *Queue) GetPrefix(ctx context.Context, id string, bytes int) (*JobInfo, error) {
	return q.get(ctx, words{"DQ.GET", q.key(id), id, "PREFIX", bytes})
}

func (q *Queue) get(ctx context.Context, words words) (*JobInfo, error) {
	reply, err := found(q.do(ctx, words))
	if err != nil {
		return nil, err
	}
	return jobInfoOf(resp.Map(reply), q.codec), nil
}

// found turns a nil reply into ErrNotFound, for commands that reply nil only if nothing exists.
func found(reply any, err error) (any, error) {
	if reply == nil && err == nil {
		return nil, ErrNotFound
	}
	return reply, err
}

// PeekOptions are the options of [Queue.Peek].
type PeekOptions struct {
	Count        int // default: 1
	Since, Until time.Time
	Prefix       *int // how many bytes of each payload; nil: all
}

// Peek returns the first jobs of each shard that are in a state, in that state's order. It changes nothing. A shard ends
// its answer after 16 MB of payloads: fewer than Count are not always all, unless Prefix is 0.
func (q *Queue) Peek(ctx context.Context, state State, options *PeekOptions) ([]Peeked, error) {
	o := cmp.Or(options, &PeekOptions{})
	rest := words{string(state)}.instant("FROM", o.Since).instant("TO", o.Until).add("COUNT", max(1, o.Count))
	if o.Prefix != nil {
		rest = rest.add("PREFIX", *o.Prefix)
	}
	replies, err := q.each(ctx, "DQ.PEEK", rest...)
	var found []Peeked
	for _, reply := range replies {
		found = append(found, peekedOf(resp.List(reply))...)
	}
	return found, err
}

// ScanOptions are the options of [Queue.Scan], [Queue.IDs] and [Queue.Groups]. Groups takes Shard, Match, Count and
// HasSettings only.
type ScanOptions struct {
	Shard int
	State State
	Match string // a pattern for ids, as of KEYS
	Group string
	// Payload, Label, Awaits and Reason are patterns, as Match is: for payloads, labels, names of the signals that jobs
	// wait for, and why jobs failed last.
	Payload, Label, Awaits, Reason string
	Recurring                      bool // only jobs with a rule
	HasSettings                    bool // of Groups: those with settings of their own instead, with jobs or without
	Count                          int
}

func (o *ScanOptions) words() (out words) {
	for _, each := range [][2]string{
		{"STATE", string(o.State)}, {"GROUP", o.Group}, {"PAYLOAD", o.Payload}, {"LABEL", o.Label}, {"AWAITS", o.Awaits},
		{"REASON", o.Reason}, {"MATCH", o.Match},
	} {
		out = out.value(each[0], each[1], each[1] != "")
	}
	return out.flag("RECURRING", o.Recurring).flag("SET", o.HasSettings).value("COUNT", o.Count, o.Count != 0)
}

// Scan makes one step through the ids: it returns the next cursor ("0" at the end) and some ids. Begin with "0".
// [Queue.IDs] takes all steps.
func (q *Queue) Scan(ctx context.Context, cursor string, options *ScanOptions) (string, []string, error) {
	next, rows, err := q.scan(ctx, "DQ.SCAN", cursor, cmp.Or(options, &ScanOptions{}))
	ids := make([]string, len(rows))
	for at, row := range rows {
		ids[at] = resp.Text(row)
	}
	return next, ids, err
}

func (q *Queue) scan(ctx context.Context, command, cursor string, o *ScanOptions) (string, []any, error) {
	reply, err := q.do(ctx, words{command, q.keys[o.Shard], cmp.Or(cursor, "0")}.add(o.words()...))
	pair := resp.List(reply)
	if len(pair) != 2 {
		return "0", nil, err
	}
	return resp.Text(pair[0]), resp.List(pair[1]), nil
}

// IDs iterates over all ids of all shards, step by step.
func (q *Queue) IDs(ctx context.Context, options *ScanOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		o := *cmp.Or(options, &ScanOptions{Count: 1000})
		for o.Shard = range q.keys {
			for cursor, isFirst := "0", true; isFirst || cursor != "0"; isFirst = false {
				next, ids, err := q.Scan(ctx, cursor, &o)
				if err != nil {
					yield("", err)
					return
				}
				for _, id := range ids {
					if !yield(id, nil) {
						return
					}
				}
				cursor = next
			}
		}
	}
}

// Forecast divides the time from from to to into equal buckets, and returns how many jobs will be due in each.
func (q *Queue) Forecast(ctx context.Context, from, to time.Time, buckets int) ([]int, error) {
	replies, err := q.each(ctx, "DQ.FORECAST", "FROM", resp.InstantMs(from), "TO", resp.InstantMs(to), "BUCKETS", buckets)
	counts := make([]int, buckets)
	for _, reply := range replies {
		for at, count := range resp.List(reply) {
			counts[at] += int(resp.Int(count))
		}
	}
	return counts, err
}

// Len returns how many jobs are in a state; with [All], how many are blocked, delayed, ready or reserved.
func (q *Queue) Len(ctx context.Context, state State) (int, error) {
	if state == All || state == AnyState {
		return sum(q.each(ctx, "DQ.LEN"))
	}
	return sum(q.each(ctx, "DQ.LEN", string(state)))
}

// LenOfGroup returns how many jobs a group has.
func (q *Queue) LenOfGroup(ctx context.Context, group string) (int, error) {
	return sum(q.each(ctx, "DQ.LEN", "GROUP", group))
}

// Stats returns the queue's figures, summed over its shards. The error is [ErrNotFound] if the queue does not exist.
func (q *Queue) Stats(ctx context.Context) (*Stats, error) {
	replies, err := q.each(ctx, "DQ.STATS")
	if err != nil {
		return nil, err
	}
	var shards []map[string]any
	for _, reply := range replies {
		if fields := resp.Map(reply); fields != nil {
			shards = append(shards, fields)
		}
	}
	if len(shards) == 0 {
		return nil, ErrNotFound
	}
	return addUp(shards), nil
}

// Explain says why the queue delivers nothing: all that holds, in the server's order; of a sharded queue, the numbers of
// its shards added up. The error is [ErrNotFound] if the queue does not exist.
func (q *Queue) Explain(ctx context.Context) ([]Explanation, error) {
	replies, err := q.each(ctx, "DQ.EXPLAIN")
	if err != nil {
		return nil, err
	}
	return explanations(replies)
}

// ExplainJob says why the queue does not deliver a job. The error is [ErrNotFound] if the job does not exist.
func (q *Queue) ExplainJob(ctx context.Context, id string) ([]Explanation, error) {
	reply, err := q.do(ctx, words{"DQ.EXPLAIN", q.key(id), id})
	if err != nil {
		return nil, err
	}
	return explanations([]any{reply})
}

// Next returns the next count due times of a recurring job; none for a job that does not recur. The error is
// [ErrNotFound] if the job does not exist.
func (q *Queue) Next(ctx context.Context, id string, count int) ([]time.Time, error) {
	reply, err := found(q.do(ctx, words{"DQ.NEXT", q.key(id), id, "COUNT", max(1, count)}))
	if err != nil {
		return nil, err
	}
	instants := []time.Time{}
	for _, each := range resp.List(reply) {
		instants = append(instants, resp.Time(each))
	}
	return instants, nil
}

// Groups makes one step through the groups that hold jobs: it returns the next cursor ("0" at the end) and some groups.
func (q *Queue) Groups(ctx context.Context, cursor string, options *ScanOptions) (string, []Group, error) {
	next, rows, err := q.scan(ctx, "DQ.GROUPS", cursor, cmp.Or(options, &ScanOptions{}))
	groups := make([]Group, 0, len(rows))
	for _, each := range rows {
		if row := resp.List(each); len(row) == 3 {
			groups = append(groups, Group{resp.Text(row[0]), int(resp.Int(row[1])), int(resp.Int(row[2]))})
		}
	}
	return next, groups, err
}

// Kind returns the kind that the job was added with, or "".
func (j *JobInfo) Kind() string {
	if e := readEnvelope(j.Payload); e != nil {
		return e.kind
	}
	return ""
}

// Headers returns the headers that the job was added with.
func (j *JobInfo) Headers() map[string]string {
	if e := readEnvelope(j.Payload); e != nil {
		return e.headers
	}
	return nil
}

// Decode decodes the job's data, with the queue's codec, into the value that v points to.
func (j *JobInfo) Decode(v any) error {
	if e := readEnvelope(j.Payload); e != nil {
		return decoded(JSON, e.data, v)
	}
	return decoded(j.codec, j.Payload, v)
}
