package dq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

// running returns the job's delivery, unless its attempt has ended.
func (j *Job) running() (*delivery, error) {
	d, isDelivered := j.delivery.(*delivery)
	if !isDelivered {
		return nil, errors.New("dq: this job was not delivered")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.suspension != nil {
		return nil, ErrSuspended
	}
	return d, d.told
}

// at returns the job's delivery, whose attempt reaches the step of that name, and the value if it was kept. The name
// with the prefix is the name of a marker, which must fit, too.
func (j *Job) at(name, prefix string) (d *delivery, value []byte, isKept bool, err error) {
	if err = checkName(name, prefix); err != nil {
		return nil, nil, false, err
	}
	if d, err = j.running(); err != nil {
		return nil, nil, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	value, isKept = d.steps.kept[name]
	return d, value, isKept, d.steps.use(name)
}

// Steps returns a copy of the values that are kept with the job, by [Step] and [Queue.Signal].
func (j *Job) Steps() map[string][]byte {
	d, isDelivered := j.delivery.(*delivery)
	if !isDelivered {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := maps.Clone(d.steps.kept)
	maps.DeleteFunc(all, func(name string, _ []byte) bool { return strings.HasPrefix(name, ours) })
	return all
}

// Step runs do once in the life of the job, and keeps what it returns: later attempts return the kept value, and do not
// run do again. What is not a step runs again in each attempt. If the process dies after do and before its value is
// kept, do runs again, too.
//
//	receipt, err := dq.Step(ctx, job, "charge", func(ctx context.Context) (Receipt, error) {
//		return charge(ctx, order, job.ID+"/charge")
//	})
//	if err != nil {
//		return err
//	}
//
// The error is that of do, or [ErrLost] if another worker may have the job.
func Step[T any](ctx context.Context, job *Job, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	d, value, isKept, err := job.at(name, "")
	if err != nil {
		return none, err
	}
	if isKept {
		return stepOf[T](d, name, value)
	}
	made, err := do(ctx)
	if err != nil {
		return made, err
	}
	raw, err := encoded(d.source.codec, made)
	if err != nil {
		return none, fmt.Errorf("dq: the value of step %q cannot be encoded: %w", name, err)
	}
	return made, d.keep(ctx, name, raw)
}

func stepOf[T any](d *delivery, name string, value []byte) (found T, err error) {
	if err = decoded(d.source.codec, value, &found); err != nil {
		err = fmt.Errorf("dq: the value of step %q cannot be decoded: %w", name, err)
	}
	return found, err
}

// keep stores a step on the server; it retries while the server cannot be reached.
func (d *delivery) keep(ctx context.Context, name string, value []byte) error {
	reply, err := d.ask(ctx, words{"DQ.STEP", d.queue, d.id, d.token, name, value})
	if err != nil {
		return err
	}
	if reply == nil {
		return d.lost()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps.keep(name, value)
	return nil
}

// ask sends a command that is safe to send twice. It retries while the server cannot be reached and the job is ours.
func (d *delivery) ask(ctx context.Context, call words) (any, error) {
	return d.source.insist(ctx, call, d.why)
}

// insist sends a command that is safe to send twice. It retries while the server cannot be reached and over says nothing.
func (q *Queue) insist(ctx context.Context, call words, over func() error) (any, error) {
	for tries := 1; ; tries++ {
		reply, err := q.do(ctx, call)
		if err == nil || !passes(err) {
			return reply, err
		}
		if size := call.size(); tries >= mostCuts && size >= cuttingBytes && !resp.IsError(err) {
			return nil, fmt.Errorf("dq: a command of %d bytes failed %d times: %w", size, tries, err)
		}
		select {
		case <-time.After(max(shortestStep, min(trouble.Pause(tries), time.Second))):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if why := over(); why != nil {
			return nil, why
		}
	}
}

// passes says whether trying again may help.
func passes(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var said *ConfigurationError
	if errors.As(err, &said) || fatal(err) != nil {
		return false
	}
	return trouble.Passes(err)
}

// lost handles a reply by which the server no longer knows the delivery.
func (d *delivery) lost() error {
	if d.link != nil {
		d.link.lose(d)
	}
	return cmp.Or(d.why(), ErrLost)
}

// suspend ends the attempt. The server is told when the handler has returned.
func (d *delivery) suspend(until suspension) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.suspension == nil {
		d.suspension = &until
	}
	return ErrSuspended
}

func (d *delivery) step(name, value string) []string {
	return []string{"DQ.STEP", d.queue, d.id, d.token, name, value}
}

// Sleep suspends the job for a duration. It returns [ErrSuspended], which the handler returns. Later the handler is
// called again, by any worker, and Sleep returns nil. No process waits meanwhile, and the attempt does not count.
//
//	if err := job.Sleep("until reminded", 72*time.Hour); err != nil {
//		return err
//	}
func (j *Job) Sleep(name string, duration time.Duration) error {
	if duration < 0 {
		return fmt.Errorf("dq: a sleep of %s", duration)
	}
	d, _, isOver, err := j.at(name, "")
	if err != nil || isOver {
		return err
	}
	return d.suspend(suspension{before: [][]string{d.step(name, "")}, rest: []string{"DELAY", resp.MsText(duration)}})
}

// WaitSignal suspends the job until [Queue.Signal] sends it a signal, and returns the signal's value. If it has not
// been sent, the error is [ErrSuspended], which the handler returns; the handler is called again when the signal is
// there. With a timeout other than 0, the error is a [*TimedOutError] if the signal is not there by then, in later
// attempts too.
func WaitSignal[T any](ctx context.Context, job *Job, name string, timeout time.Duration) (T, error) {
	var none T
	if timeout < 0 {
		return none, fmt.Errorf("dq: a timeout of %s", timeout)
	}
	d, value, isSet, err := job.at(name, waitPrefix)
	if err != nil {
		return none, err
	}
	marker := waitPrefix + name
	d.mu.Lock()
	state := string(d.steps.kept[marker])
	d.mu.Unlock()
	switch waited(state, isSet, timeout > 0) {
	case hears:
		if len(value) == 0 {
			return none, nil
		}
		return stepOf[T](d, name, value)
	case gaveItUp:
		if state != timedOut {
			if err := d.keep(ctx, marker, []byte(timedOut)); err != nil {
				return none, err
			}
		}
		return none, &TimedOutError{job.ID, timeout, name}
	case waitsBriefly:
		return none, d.suspend(suspension{
			before: [][]string{d.step(marker, waiting)}, rest: []string{"AWAIT", name, "DELAY", resp.MsText(timeout)},
		})
	}
	return none, d.suspend(suspension{rest: []string{"AWAIT", name}})
}

type waitState int

const (
	hears waitState = iota
	gaveItUp
	waitsBriefly
	waitsOn
)

// waited says how a wait for a signal goes on, by the value of its marker.
func waited(marker string, isSet, hasTimeout bool) waitState {
	switch {
	case marker == timedOut:
		return gaveItUp
	case isSet:
		return hears
	case !hasTimeout:
		return waitsOn
	case marker == waiting:
		return gaveItUp
	}
	return waitsBriefly
}
