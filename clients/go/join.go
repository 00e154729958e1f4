package dq

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

const (
	mostAfter = 1000 // jobs that one may be after
	joinTries = 5
)

// Join adds jobs, and one that begins when all of them have ended: then. It returns the id of that one; its errors are
// those of [Queue.Add].
//
// All are added in one transaction. [Job.Results] of the last job says how the others ended, its OnDead what it does if one
// dies. It is kept for a minute, unless it has a Keep: if the answer of the server is lost, it is looked up, and all are
// sent again only if it is not there and none of the others ran. Where nobody can tell, as its Keep is over or a job of its
// ID was there and had not ended, the error of the connection says so.
//
// More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then there are no results.
func (q *Queue) Join(ctx context.Context, jobs []NewJob, then NewJob) (string, error) {
	j, err := q.joinOf(ctx, jobs, then)
	if err != nil {
		return "", err
	}
	replies, err := within(ctx, func() ([]any, error) { return j.send(ctx) })
	if err != nil && err == ctx.Err() && j.isSent.Load() {
		err = unsure(err)
	}
	last := len(jobs)
	if replies != nil {
		var ids []string
		ids, err = q.idsOf(ctx, j.jobs, j.made, replies, err)
		if err == nil {
			return orRefused(&then.JobOptions, ids[last])
		}
	}
	if err != nil {
		return "", err
	}
	return j.made.all[last].id, nil
}

func unsure(lost error) error {
	return fmt.Errorf("%w: it is not known whether the jobs were added", lost)
}

// joining is a join on its way.
type joining struct {
	queue *Queue
	key   string
	jobs  []NewJob // the last one is after the others
	made  packing
	kept  time.Duration // how long the last one is there at least: later on, that it is not there says nothing

	isSent atomic.Bool
	sentAt time.Time
	lost   error          // what befell the sending before, if nobody knows whether it arrived
	before map[string]any // the job that had the last one's id before
	isOver bool           // nobody will know
}

func (q *Queue) joinOf(ctx context.Context, jobs []NewJob, then NewJob) (*joining, error) {
	if len(jobs) == 0 {
		return nil, &ConfigurationError{What: "a join needs jobs that come before the last one"}
	}
	if then.After != nil || then.AfterGroup != "" {
		return nil, &ConfigurationError{What: "the last job of a join has neither After nor AfterGroup: it is after the others"}
	}
	then.Keep = cmp.Or(then.Keep, keepResult)
	j := &joining{queue: q, jobs: append(slices.Clone(jobs), then), kept: max(0, then.Keep)}
	if then.TTL > 0 {
		j.kept = min(j.kept, then.TTL)
	}
	named := slices.Clone(j.jobs)
	ids, err := j.name(named)
	if err != nil {
		return nil, err
	}
	last := &named[len(jobs)]
	behind := JobOptions{After: ids[:len(jobs)], OnDead: last.OnDead}
	if len(jobs) > mostAfter {
		behind.After, behind.AfterGroup = nil, cmp.Or(jobs[0].Group, "join:"+newID())
		for at := range jobs {
			if named[at].Group = cmp.Or(named[at].Group, behind.AfterGroup); named[at].Group != behind.AfterGroup {
				return nil, &ConfigurationError{What: "more than 1000 jobs are joined by their group: give them one, or none"}
			}
		}
	}
	last.OnDead = ""
	all, err := q.addsOf(ctx, named)
	after := behind.after()
	if err = cmp.Or(err, after.mistake()); err != nil {
		return nil, err
	}
	tail := &all[len(jobs)]
	tail.options, tail.isAlone = append(slices.Clone(tail.options), after...), true
	j.made = packed(all)
	return j, nil
}

// name gives each job an id of one shard.
func (j *joining) name(jobs []NewJob) ([]string, error) {
	first := newID()
	if given := slices.IndexFunc(jobs, func(job NewJob) bool { return job.ID != "" }); given >= 0 {
		first = jobs[given].ID
	}
	j.key = j.queue.key(first)
	ids := make([]string, len(jobs))
	for at := range jobs {
		ids[at] = cmp.Or(jobs[at].ID, j.queue.idIn(j.key, newID()))
		if jobs[at].ID = ids[at]; j.queue.key(ids[at]) != j.key {
			return nil, &ConfigurationError{What: "the jobs of a join must be in one shard: leave their IDs out"}
		}
	}
	return ids, nil
}

// send returns the replies; none, and no error, if the jobs were added and the answer was lost.
func (j *joining) send(ctx context.Context) ([]any, error) {
	// A line, as a client sends again by itself what may have been executed.
	l := j.queue.spare.take(j.queue.client, j.key, longestAnswer)
	for tries := 1; ; tries++ {
		replies, err := j.attempt(ctx, l)
		if err == nil || replies != nil {
			j.queue.spare.put(l, nil)
			return replies, err
		}
		l.close()
		if j.isOver || tries == joinTries || ctx.Err() != nil || resp.IsError(err) && !trouble.Passes(err) {
			if j.lost != nil {
				err = unsure(j.lost)
			}
			return nil, err
		}
		select {
		case <-time.After(trouble.Pause(tries)):
		case <-ctx.Done():
		}
	}
}

// attempt sends the transaction, unless it has had its effect: then, and if it was refused, there are no replies.
func (j *joining) attempt(ctx context.Context, l *line) ([]any, error) {
	if isDue, err := j.isDue(ctx); err != nil || !isDue {
		return nil, err
	}
	if err := l.open(); err != nil {
		return nil, err // nothing was sent
	}
	j.isSent.Store(true)
	replies, err := transacted(l, j.made.calls)
	if j.lost = nil; err != nil && !resp.IsError(err) {
		j.lost = err
	}
	return replies, err
}

// isDue says whether the transaction must be sent.
func (j *joining) isDue(ctx context.Context) (bool, error) {
	last := len(j.jobs) - 1
	if j.lost == nil {
		if j.jobs[last].ID != "" {
			found, err := j.look(ctx, j.made.all[last:])
			if err != nil {
				return false, err
			}
			j.before = found[0]
		}
		j.sentAt = time.Now()
		return true, nil
	}
	found, err := j.look(ctx, j.made.all)
	if err != nil {
		return false, err
	}
	// A job that is still to run is not replaced, so what becomes of it tells nothing. One that has ended does not change.
	isHidden := j.before != nil && !hasEnded(j.before)
	switch {
	case found[last] != nil && !isHidden && !reflect.DeepEqual(found[last], j.before):
		return false, nil
	case isHidden || found[last] == nil && time.Since(j.sentAt) >= j.kept || slices.ContainsFunc(found[:last], hasBegun):
		j.isOver = true
		return false, j.lost
	}
	return true, nil
}

// look returns what the server knows of the jobs; nil where it does not hold one.
func (j *joining) look(ctx context.Context, some []adds) ([]map[string]any, error) {
	calls := make([]words, len(some))
	for at, each := range some {
		calls[at] = words{"DQ.GET", each.key, each.id, "PREFIX", 0}
	}
	replies, err := j.queue.all(ctx, calls)
	found := make([]map[string]any, len(some))
	for at, reply := range replies {
		found[at] = resp.Map(reply)
	}
	return found, err
}

func hasEnded(job map[string]any) bool {
	state := State(resp.Text(job["state"]))
	return state == Done || state == Dead
}

func hasBegun(job map[string]any) bool { return resp.Int(job["attempts"]) > 0 || hasEnded(job) }

// transacted executes calls in one transaction. Without replies, none was executed.
func transacted(l *line, calls []words) ([]any, error) {
	all := [][]string{{"MULTI"}}
	for _, call := range calls {
		all = append(all, call.texts())
	}
	queued, err := l.ask(append(all, []string{"EXEC"})...)
	if err != nil {
		return nil, err
	}
	// What is said to MULTI and EXEC is said to the first and the last one.
	around := slices.Concat(calls[:1], calls, calls[len(calls)-1:])
	if err := refusal(around, queued); err != nil {
		return nil, err
	}
	replies := resp.List(queued[len(queued)-1])
	return replies, refusal(calls, replies)
}

// refusal is the error for the first call that was refused.
func refusal(calls []words, replies []any) error {
	for at, reply := range replies {
		if said, isRefused := reply.(resp.Error); isRefused {
			_, err := answered(calls[at], nil, said)
			return err
		}
	}
	return nil
}
