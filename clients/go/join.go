package dq

import (
	"cmp"
	"context"
	"slices"
)

const mostAfter = 1000 // jobs that one may be after

// Join adds jobs, and one that begins when all of them have ended: then. It returns the id of that one; its errors are
// those of [Queue.Add].
//
// All are added in one transaction. [Job.Results] of the last job says how the others ended, its OnDead what it does if one
// dies. It is kept for a minute, unless it has a Keep: if the answer of the server is lost, it is looked up, and all are
// sent again only if it is not there and none of the others ran. Where nobody can tell, as its Keep may be over or a job of
// its ID was there and had not ended, the error of the connection says so.
//
// More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then there are no results.
func (q *Queue) Join(ctx context.Context, jobs []NewJob, then NewJob) (string, error) {
	if len(jobs) == 0 {
		return "", &ConfigurationError{What: "a join needs jobs that come before the last one"}
	}
	if then.After != nil || then.AfterGroup != "" {
		return "", &ConfigurationError{What: "the last job of a join has neither After nor AfterGroup: it is after the others"}
	}
	then.Keep = cmp.Or(then.Keep, keepResult)
	given := append(slices.Clone(jobs), then)
	all, err := q.joined(ctx, slices.Clone(given))
	if err != nil {
		return "", err
	}
	ids, err := q.together(ctx, given, all)
	if err != nil {
		return "", err
	}
	return orRefused(&then.JobOptions, ids[len(jobs)])
}

// joined makes jobs of one shard ready to be sent, the last of them after the others.
func (q *Queue) joined(ctx context.Context, jobs []NewJob) ([]adds, error) {
	ids, err := q.idsTogether(jobs)
	if err != nil {
		return nil, err
	}
	others, last := jobs[:len(jobs)-1], &jobs[len(jobs)-1]
	behind := JobOptions{After: ids[:len(others)], OnDead: last.OnDead}
	if len(others) > mostAfter {
		behind.After, behind.AfterGroup = nil, cmp.Or(jobs[0].Group, "join:"+newID())
		for at := range others {
			if others[at].Group = cmp.Or(others[at].Group, behind.AfterGroup); others[at].Group != behind.AfterGroup {
				return nil, &ConfigurationError{What: "more than 1000 jobs are joined by their group: give them one, or none"}
			}
		}
	}
	last.OnDead = ""
	all, err := q.addsOf(ctx, jobs)
	after := behind.after()
	if err = cmp.Or(err, after.mistake()); err != nil {
		return nil, err
	}
	tail := &all[len(others)]
	tail.options, tail.isAlone = append(slices.Clone(tail.options), after...), true
	return all, nil
}

// idsTogether gives each job an id of one shard.
func (q *Queue) idsTogether(jobs []NewJob) ([]string, error) {
	first := newID()
	if given := slices.IndexFunc(jobs, func(job NewJob) bool { return job.ID != "" }); given >= 0 {
		first = jobs[given].ID
	}
	key := q.key(first)
	ids := make([]string, len(jobs))
	for at := range jobs {
		ids[at] = cmp.Or(jobs[at].ID, q.idIn(key, newID()))
		if jobs[at].ID = ids[at]; q.key(ids[at]) != key {
			return nil, &ConfigurationError{What: "the jobs of a join must be in one shard: leave their IDs out"}
		}
	}
	return ids, nil
}
