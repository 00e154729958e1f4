package dq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const (
	chunkJobs  = 1000 // jobs of one DQ.MADD, so that other clients' commands run in between
	chunkBytes = 1 << 20
	partJobs   = 2 * chunkJobs // the least number of jobs for which a goroutine is started
)

// AddMany adds many jobs in few round trips, and returns their ids: "" where the condition refused one. If all have the same options,
// up to a thousand are added by one command, which adds all of them or none. If some come after others (see
// [JobOptions].After), all are added in one transaction, and may come after each other.
//
// An invalid job is reported before anything is sent. With any other error, the ids of the jobs that were added are
// returned; the rest may not have been added.
//
// Many thousands of jobs are encoded by several goroutines, so the codec must be safe for concurrent use.
func (q *Queue) AddMany(ctx context.Context, jobs []NewJob) ([]string, error) {
	all, err := q.addsOf(ctx, jobs)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var replies []any
	switch {
	case slices.ContainsFunc(jobs, func(job NewJob) bool { return len(job.After) > 0 || job.AfterGroup != "" }):
		replies, err = q.transaction(ctx, callsOf(all))
	case jobs[0].IfExists != RunAgain && areAlike(all):
		replies, err = q.chunked(ctx, all)
	default:
		replies, err = q.all(ctx, callsOf(all))
	}
	ids := make([]string, len(jobs))
	count := 0
	for at := range replies {
		ids[at] = added(&jobs[at].JobOptions, all[at].id, replies[at], err)
		if ids[at] != "" {
			count++
		}
	}
	if err != nil {
		var after []string
		for _, job := range jobs {
			after = append(after, job.After...)
		}
		err = fmt.Errorf("%w (%d of %d jobs were added)", q.namingUnknown(ctx, err, after), count, len(jobs))
	}
	return ids, err
}

// adds is a job that is ready to be sent.
type adds struct {
	key, id string
	payload []byte
	options words // shared with the job before, if equal: most are
}

func (q *Queue) addsOf(ctx context.Context, jobs []NewJob) ([]adds, error) {
	all := make([]adds, len(jobs))
	size := max(partJobs, (len(jobs)-1)/runtime.GOMAXPROCS(0)+1)
	var makers sync.WaitGroup
	mistakes := make([]error, (len(jobs)+size-1)/size)
	for part := range mistakes {
		first := part * size
		end := min(first+size, len(jobs))
		makers.Go(func() {
			guard.Run(func() error {
				return q.addsInto(ctx, all[first:end], jobs[first:end])
			}, func(failure error) { mistakes[part] = failure })
		})
	}
	makers.Wait()
	return all, cmp.Or(mistakes...)
}

func (q *Queue) addsInto(ctx context.Context, all []adds, jobs []NewJob) error {
	var last, now words
	for at := range jobs {
		options := &jobs[at].JobOptions
		id, payload, err := q.made(ctx, jobs[at].Data, options)
		if err != nil {
			return err
		}
		now = options.words(now[:0])
		if !slices.Equal(now, last) {
			if err := now.mistake(); err != nil {
				return err
			}
			last = slices.Clone(now)
		}
		all[at] = adds{q.key(id), id, payload, last}
	}
	return nil
}

func callsOf(all []adds) []words {
	calls := make([]words, len(all))
	for at, each := range all {
		calls[at] = words{"DQ.ADD", each.key, each.id, each.payload}.add(each.options...)
	}
	return calls
}

// Chain adds jobs in one transaction, each after the one before, and returns their ids.
func (q *Queue) Chain(ctx context.Context, jobs []NewJob) ([]string, error) {
	chain := slices.Clone(jobs)
	for at := range chain {
		if at == 0 {
			id, err := q.idFor(&chain[at].JobOptions)
			if err != nil {
				return nil, err
			}
			chain[at].ID = id
			continue
		}
		if chain[at].After != nil || chain[at].AfterGroup != "" {
			return nil, &ConfigurationError{What: "a job of a chain comes after the one before"}
		}
		chain[at].After = []string{chain[at-1].ID}
		if chain[at].ID == "" {
			chain[at].ID = q.idIn(q.key(chain[0].ID), newID())
		}
	}
	return q.AddMany(ctx, chain)
}

// idIn makes an id that belongs to the shard of key.
func (q *Queue) idIn(key, id string) string {
	made := id
	for n := 1; q.key(made) != key; n++ {
		made = fmt.Sprintf("%s~%d", id, n)
	}
	return made
}

func areAlike(all []adds) bool {
	return !slices.ContainsFunc(all, func(each adds) bool { return !slices.Equal(each.options, all[0].options) })
}

// chunked adds the jobs by DQ.MADD.
func (q *Queue) chunked(ctx context.Context, all []adds) ([]any, error) {
	chunks := chunksOf(all)
	commands := make([]words, len(chunks))
	for at, chunk := range chunks {
		first := &all[chunk[0]]
		command := append(make(words, 0, 3+2*len(chunk)+len(first.options)), "DQ.MADD", first.key, len(chunk))
		for _, n := range chunk {
			command = append(command, all[n].id, all[n].payload)
		}
		commands[at] = append(command, first.options...)
	}
	replies, err := q.all(ctx, commands)
	found := make([]any, len(all))
	for at, reply := range replies {
		for n, id := range resp.List(reply) {
			found[chunks[at][n]] = id
		}
	}
	return found, err
}

// chunksOf returns the indexes of the jobs of each DQ.MADD: all of one key, within chunkJobs and chunkBytes.
func chunksOf(all []adds) (chunks [][]int) {
	type filling struct{ chunk, bytes int }
	open := map[string]filling{}
	for at, each := range all {
		size := len(each.id) + len(each.payload)
		now, isOpen := open[each.key]
		if !isOpen || len(chunks[now.chunk]) == chunkJobs || now.bytes+size > chunkBytes {
			now = filling{len(chunks), 0}
			chunks = append(chunks, nil)
		}
		now.bytes += size
		open[each.key] = now
		chunks[now.chunk] = append(chunks[now.chunk], at)
	}
	return chunks
}

// transaction sends calls of one key in a MULTI.
func (q *Queue) transaction(ctx context.Context, calls []words) ([]any, error) {
	if slices.ContainsFunc(calls, func(call words) bool { return call[1] != calls[0][1] }) {
		return nil, errors.New("dq: jobs that come after each other must be of one shard")
	}
	return q.sent(ctx, calls, q.client.TxPipelined)
}
