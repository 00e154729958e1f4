package dq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// WaitOptions are the options of [Job.WaitFor] and [Job.Spawn].
type WaitOptions struct {
	// Name names the wait; the default is its number in this attempt. Name the waits if their order depends on more
	// than steps.
	Name string
	// OnDead says what happens if one of the jobs dies. Default: OnDeadRun, it has ended, as [JobResult].Outcome says.
	OnDead OnDead
}

// WaitFor suspends the job until those jobs of its queue have ended, and returns how they ended. If they have not, the
// error is [ErrSuspended], which the handler returns; the handler is called again when they have.
func (j *Job) WaitFor(ctx context.Context, ids []string, options ...WaitOptions) ([]JobResult, error) {
	return j.join(ctx, options, func(*delivery, string) (forked, error) { return forked{ids: ids, after: ids}, nil })
}

// Spawn adds jobs, and suspends this one until they have ended, as [Job.WaitFor] does, in one command. Ids that are not
// given are made of this job's id, the wait's name and the job's number, so later attempts add no second children.
func (j *Job) Spawn(ctx context.Context, jobs []NewJob, options ...WaitOptions) ([]JobResult, error) {
	return j.join(ctx, options, func(d *delivery, name string) (made forked, err error) {
		for at := range jobs {
			child := jobs[at].JobOptions
			if child.ID == "" {
				child.ID = d.source.idIn(d.queue, fmt.Sprintf("%s/%s/%d", d.id, name, at))
			}
			call, err := d.source.adding(ctx, jobs[at].Data, &child, nil)
			if err == nil {
				err = call.mistake()
			}
			if err != nil {
				return forked{}, err
			}
			isAdded := func(id string) bool { return slices.Contains(made.ids, id) }
			made.after = append(made.after, slices.DeleteFunc(slices.Clone(child.After), isAdded)...)
			made.ids, made.adds = append(made.ids, child.ID), append(made.adds, call.texts())
		}
		return made, nil
	})
}

// forked are the jobs that another one waits for.
type forked struct {
	ids   []string
	adds  [][]string // the commands that add them
	after []string   // the jobs that must be there before
}

// join waits for the jobs that prepare returns.
func (j *Job) join(
	ctx context.Context, options []WaitOptions, prepare func(*delivery, string) (forked, error),
) ([]JobResult, error) {
	var o WaitOptions
	if len(options) > 0 {
		o = options[0]
	}
	d, name, err := j.waitFor(o.Name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	packed, isOver := d.steps.kept[afterPrefix+name]
	d.mu.Unlock()
	if isOver {
		all, err := unpackEndings(packed)
		return resultsOf(all, d.source.codec), err
	}
	made, err := prepare(d, name)
	ids := made.ids
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if slices.EqualFunc(ids, d.results, func(id string, each ending) bool { return id == each.id }) {
		return resultsOf(d.results, d.source.codec), d.keep(ctx, afterPrefix+name, packEndings(d.results))
	}
	if d.source.desk != nil {
		return nil, d.source.desk.lacks("to wait for jobs")
	}
	if slices.ContainsFunc(ids, func(id string) bool { return d.source.key(id) != d.queue }) {
		return nil, errors.New("dq: a job can only wait for jobs of its own shard")
	}
	rest := append([]string{"AFTER", strconv.Itoa(len(ids))}, ids...)
	rest = append(rest, "ONDEAD", string(cmp.Or(o.OnDead, OnDeadRun)))
	return nil, d.suspend(suspension{made.adds, rest, made.after})
}

// waitFor returns the job's delivery, whose attempt reaches a wait, and the name of the wait.
func (j *Job) waitFor(name string) (*delivery, string, error) {
	d, err := j.running()
	if err != nil {
		return nil, "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps.wait++
	name = cmp.Or(name, strconv.Itoa(d.steps.wait))
	if err := checkName(name, afterPrefix); err != nil {
		return nil, "", err
	}
	return d, name, d.steps.use(afterPrefix + name)
}
