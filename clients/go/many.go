package dq

import (
	"cmp"
	"context"
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

// AddMany adds many jobs in few round trips, and returns their ids: "" where the condition refused one. Jobs with the same
// options share commands of up to a thousand, each of which adds all of its jobs or none. If some come after others (see
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
	if slices.ContainsFunc(jobs, func(job NewJob) bool { return len(job.After) > 0 || job.AfterGroup != "" }) {
		return q.together(ctx, jobs, all)
	}
	made := packed(all)
	replies, err := q.all(ctx, made.calls)
	return q.idsOf(ctx, jobs, made, replies, err)
}

// idsOf returns the ids of jobs that were added by these commands, and the error with how many they are.
func (q *Queue) idsOf(ctx context.Context, jobs []NewJob, made packing, replies []any, err error) ([]string, error) {
	ids := make([]string, len(jobs))
	count := 0
	for chunk, reply := range replies {
		each := []any{reply}
		if len(made.places[chunk]) > 1 {
			each = resp.List(reply)
		}
		for n, reply := range each {
			at := made.places[chunk][n]
			ids[at] = added(&jobs[at].JobOptions, made.all[at].id, reply, err)
			if ids[at] != "" {
				count++
			}
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
	isAlone bool  // no other job can share its command
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
		isAlone := options.IfExists == RunAgain || len(options.After) > 0 || options.AfterGroup != ""
		all[at] = adds{q.key(id), id, payload, last, isAlone}
	}
	return nil
}

// Chain adds jobs in one transaction, each after the one before, and returns their ids, as [Queue.AddMany] does.
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
	all, err := q.addsOf(ctx, chain)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return q.together(ctx, jobs, all)
}

// idIn makes an id that belongs to the shard of key.
func (q *Queue) idIn(key, id string) string {
	made := id
	for n := 1; q.key(made) != key; n++ {
		made = fmt.Sprintf("%s~%d", id, n)
	}
	return made
}

// packing are the commands that add jobs, and which jobs each adds.
type packing struct {
	all    []adds
	calls  []words
	places [][]int
}

// packed packs jobs into commands. Those of one key with the same options share a DQ.MADD, within chunkJobs and
// chunkBytes; the order of each key's jobs is kept.
func packed(all []adds) packing {
	type filling struct{ chunk, bytes int }
	made := packing{all: all}
	open := map[string]filling{}
	for at := range all {
		each := &all[at]
		size := len(each.id) + len(each.payload)
		now, isOpen := open[each.key]
		if !isOpen || now.bytes+size > chunkBytes || !made.takes(now.chunk, each) {
			now = filling{len(made.places), 0}
			made.places = append(made.places, nil)
		}
		now.bytes += size
		open[each.key] = now
		made.places[now.chunk] = append(made.places[now.chunk], at)
	}
	for _, chunk := range made.places {
		made.calls = append(made.calls, made.call(chunk))
	}
	return made
}

// takes says whether a job fits into a chunk.
func (p *packing) takes(chunk int, each *adds) bool {
	first := &p.all[p.places[chunk][0]]
	return len(p.places[chunk]) < chunkJobs && !first.isAlone && !each.isAlone && slices.Equal(first.options, each.options)
}

func (p *packing) call(chunk []int) words {
	first := &p.all[chunk[0]]
	if len(chunk) == 1 {
		return words{"DQ.ADD", first.key, first.id, first.payload}.add(first.options...)
	}
	call := append(make(words, 0, 3+2*len(chunk)+len(first.options)), "DQ.MADD", first.key, len(chunk))
	for _, at := range chunk {
		call = append(call, p.all[at].id, p.all[at].payload)
	}
	return append(call, first.options...)
}
