package dq

import (
	"cmp"
	"context"
	"time"
)

// Wait waits until a job has ended, and returns its handler's result. It waits no longer than ctx lasts; if
// that times out, the error is a [*TimedOutError]. If the job did not succeed, it is a [*JobFailedError]. So it is if the
// job ended before and was not kept (see [JobOptions].Keep).
//
// All waits on a shard of a queue share one connection. It is opened for the first wait and closed with the queue.
func Wait[T any](ctx context.Context, queue *Queue, id string) (T, error) {
	var none T
	ended, err := queue.wait(ctx, id)
	switch {
	case err != nil:
		return none, err
	case ended.outcome != OutcomeDone:
		return none, &JobFailedError{id, ended.outcome, string(ended.value)}
	}
	return resultOf[T](queue.codec, ended.value)
}

// AddAndWait adds a job and waits for its result, as [Wait] does. The job is kept for a minute, unless the options say
// otherwise. If a job with this id exists, it waits for that job instead.
func AddAndWait[T any](ctx context.Context, queue *Queue, data any, options *JobOptions) (T, error) {
	var none T
	o := *cmp.Or(options, &JobOptions{})
	o.Keep = cmp.Or(o.Keep, keepResult)
	id, err := queue.Add(ctx, data, &o)
	if err != nil && err != ErrExists {
		return none, err
	}
	return Wait[T](ctx, queue, cmp.Or(id, o.ID))
}

func (q *Queue) wait(ctx context.Context, id string) (ending, error) {
	if err := ctx.Err(); err != nil {
		return ending{}, err
	}
	w, err := q.waits.of(q.client, q.key(id))
	if err != nil {
		return ending{}, err
	}
	begun := time.Now()
	told := w.add(id)
	select {
	case ended := <-told:
		return ended.ending, ended.err
	case <-ctx.Done():
		w.mu.Lock()
		w.awaited.drop(id, told)
		w.mu.Unlock()
		if deadline, has := ctx.Deadline(); has && ctx.Err() == context.DeadlineExceeded {
			return ending{}, &TimedOutError{ID: id, Timeout: deadline.Sub(begun)}
		}
		return ending{}, ctx.Err()
	}
}

// Result returns the result of a job that is done and kept (see [JobOptions].Keep). The error is [ErrNotFound] if the
// job does not exist or is not done yet, and a [*JobFailedError] if it is dead.
func Result[T any](ctx context.Context, queue *Queue, id string) (T, error) {
	var none T
	job, err := queue.Get(ctx, id)
	switch {
	case err != nil:
		return none, err
	case job.State == Dead:
		return none, &JobFailedError{id, OutcomeDead, job.Reason}
	case job.State != Done:
		return none, ErrNotFound
	}
	return resultOf[T](queue.codec, job.Result)
}

func resultOf[T any](codec Codec, raw []byte) (result T, err error) {
	if raw != nil {
		err = decoded(codec, raw, &result)
	}
	return result, err
}
