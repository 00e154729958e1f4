package dq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

const (
	chunkJobs  = 1000 // of one DQ.MADD: other clients' commands go on in between
	chunkBytes = 1 << 20
	partJobs   = 2 * chunkJobs // so many at least are made by a goroutine of their own
	optionsAt  = 4             // in the words of an ADD
)

// AddMany adds many jobs in few round trips, and returns their ids as [Queue.Add] does. If all have the same options, up to
// a thousand are added by one command, which adds all of them or none. If some are after others (see [JobOptions].After),
// all are added in one transaction, in which those others may be. A mistake in any of them is told before anything is sent.
// With any other error come the ids of those that were added; the rest may not have been.
//
// Many thousands are made by several goroutines: so the codec is called.
func (q *Queue) AddMany(ctx context.Context, jobs []NewJob) ([]string, error) {
	calls, err := q.callsOf(ctx, jobs)
	if err != nil || len(calls) == 0 {
		return nil, err
	}
	send := q.all
	switch {
	case slices.ContainsFunc(jobs, func(job NewJob) bool { return len(job.After) > 0 || job.AfterGroup != "" }):
		send = q.transaction
	case jobs[0].IfExists != RunAgain && areAlike(calls):
		send = q.chunked
	}
	replies, err := send(ctx, calls)
	ids := make([]string, len(jobs))
	count := 0
	for at := range replies {
		ids[at] = added(&jobs[at].JobOptions, calls[at], replies[at], err)
		if ids[at] != "" {
			count++
		}
	}
	if err != nil {
		err = fmt.Errorf("%w (%d of %d jobs were added)", err, count, len(jobs))
	}
	return ids, err
}

func (q *Queue) callsOf(ctx context.Context, jobs []NewJob) ([]words, error) {
	calls := make([]words, len(jobs))
	size := max(partJobs, (len(jobs)-1)/runtime.GOMAXPROCS(0)+1)
	var makers sync.WaitGroup
	mistakes := make([]error, (len(jobs)+size-1)/size)
	for part := range mistakes {
		first := part * size
		end := min(first+size, len(jobs))
		makers.Go(func() { mistakes[part] = q.callsInto(ctx, calls[first:end], jobs[first:end]) })
	}
	makers.Wait()
	return calls, cmp.Or(mistakes...)
}

func (q *Queue) callsInto(ctx context.Context, calls []words, jobs []NewJob) error {
	for at := range jobs {
		call, err := q.adding(ctx, jobs[at].Data, &jobs[at].JobOptions, nil)
		if err == nil {
			err = call.mistake()
		}
		if err != nil {
			return err
		}
		calls[at] = call
	}
	return nil
}

// Chain adds jobs in one transaction, each after the one before, and returns their ids.
func (q *Queue) Chain(ctx context.Context, jobs []NewJob) ([]string, error) {
	chain := slices.Clone(jobs)
	for at := range chain {
		if at == 0 {
			chain[at].ID = or(chain[at].ID, newID())
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

// idIn makes an id that belongs into that shard.
func (q *Queue) idIn(key, id string) string {
	made := id
	for n := 1; q.key(made) != key; n++ {
		made = fmt.Sprintf("%s~%d", id, n)
	}
	return made
}

func areAlike(calls []words) bool {
	return !slices.ContainsFunc(calls, func(call words) bool { return !slices.Equal(call[optionsAt:], calls[0][optionsAt:]) })
}

// chunked adds by DQ.MADD.
func (q *Queue) chunked(ctx context.Context, calls []words) ([]any, error) {
	chunks := chunksOf(calls)
	commands := make([]words, len(chunks))
	for at, chunk := range chunks {
		first := calls[chunk[0]]
		command := append(make(words, 0, 3+2*len(chunk)+len(first)), "DQ.MADD", first[1], len(chunk))
		for _, n := range chunk {
			command = append(command, calls[n][2], calls[n][3])
		}
		commands[at] = append(command, first[optionsAt:]...)
	}
	replies, err := q.all(ctx, commands)
	found := make([]any, len(calls))
	for at, reply := range replies {
		for n, id := range asList(reply) {
			found[chunks[at][n]] = id
		}
	}
	return found, err
}

// chunksOf are the calls of each command, by their numbers: of one key, and not too many.
func chunksOf(calls []words) (chunks [][]int) {
	type filling struct{ chunk, bytes int }
	open := map[any]filling{}
	for at, call := range calls {
		size := len(asText(call[2])) + len(call[3].([]byte))
		now, isOpen := open[call[1]]
		if !isOpen || len(chunks[now.chunk]) == chunkJobs || now.bytes+size > chunkBytes {
			now = filling{len(chunks), 0}
			chunks = append(chunks, nil)
		}
		now.bytes += size
		open[call[1]] = now
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
