package dq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

const (
	shortestDelay = 100 * time.Millisecond // handlers cannot make their jobs come back faster
	reasonBytes   = 1024
	resultBytes   = 512 << 20 // no server takes more
	unsaid        = time.Duration(-1)
)

// verdict is how an attempt ended, in plain values.
type verdict struct {
	way     way
	wait    time.Duration // unsaid: the backoff decides
	reason  string
	isMeant bool   // the handler said so on purpose
	unfit   string // an invalid value that the handler returned
	stack   []byte // of a panic
}

type way int

const (
	succeeded way = iota
	failed
	snoozed
	gaveUp
	givenBack // as if the job had not been delivered
	suspended // until what the job waits for happens
)

// judge decides on the error of a handler. In a chain of wrapped errors, the outermost decision counts.
func judge(err error, d *delivery) verdict {
	if err == nil {
		return verdict{way: succeeded, wait: unsaid}
	}
	text := guard.Text(err)
	made := verdict{way: failed, wait: unsaid, reason: fmt.Sprintf("%T: %s", err, text)}
	for _, each := range guard.Chain(err) {
		switch said := each.(type) {
		case *RetryError:
			if said != nil {
				return fit(verdict{way: failed, wait: said.Delay, reason: text, isMeant: true})
			}
		case *SnoozeError:
			if said != nil {
				return fit(verdict{way: snoozed, wait: said.Delay, reason: said.Reason, isMeant: true})
			}
		case *GiveUpError:
			if said != nil {
				return fit(verdict{way: gaveUp, wait: unsaid, reason: text, isMeant: true})
			}
		case *ResultError:
			if said != nil {
				return fit(verdict{way: gaveUp, wait: unsaid, reason: text})
			}
		case *PayloadError:
			if said != nil && said.of == d {
				return fit(verdict{way: gaveUp, wait: unsaid, reason: said.Error()})
			}
		case *PanicError:
			if said != nil {
				made.reason, made.stack = text, said.Stack
			}
		default:
			if each == context.DeadlineExceeded {
				made.reason = text
			}
		}
	}
	if d.why() == ErrStopping { // whatever the error: the handler was told to end
		return verdict{way: givenBack, wait: unsaid}
	}
	return fit(sorted(made, err, d.handler))
}

// sorted applies RetryOn and GiveUpOn of the handler.
func sorted(v verdict, err error, h *Handler) verdict {
	if h == nil || h.RetryOn == nil && h.GiveUpOn == nil {
		return v
	}
	isFinal := false
	failure := guard.Call(func() error {
		isFinal = h.GiveUpOn != nil && h.GiveUpOn(err) || h.RetryOn != nil && !h.RetryOn(err)
		return nil
	})
	if failure != nil {
		v.unfit = "RetryOn or GiveUpOn: " + guard.Text(failure)
	} else if isFinal {
		v.way = gaveUp
	}
	return v
}

// overdue is the verdict on a handler whose Timeout is over.
func overdue(limit time.Duration) verdict {
	return verdict{way: failed, wait: unsaid, reason: "timeout after " + strconv.FormatFloat(limit.Seconds(), 'f', -1, 64) + " s"}
}

// fit removes what no server accepts.
func fit(v verdict) verdict {
	if v.wait < 0 && v.isMeant && v.way != gaveUp {
		v.unfit = fmt.Sprintf("a delay of %s", v.wait)
		if v.wait = unsaid; v.way == snoozed {
			v.way, v.reason = failed, cmp.Or(v.reason, "snoozed with "+v.unfit)
		}
	}
	if v.wait != unsaid {
		v.wait = max(v.wait, shortestDelay)
	}
	v.reason = guard.Clip(v.reason, reasonBytes)
	return v
}

// verdict returns what the handler's return means for this job of its batch, the job's result and its error.
func (d *delivery) verdict(err error) (verdict, []byte, error) {
	d.mu.Lock()
	suspension, result := d.suspension, d.result
	switch {
	case d.failure != nil:
		err = d.failure
	case d.isGood && d.handler.DoBatch != nil: // whatever becomes of the others
		err = nil
	}
	d.mu.Unlock()
	if suspension != nil {
		return verdict{way: suspended, wait: unsaid}, nil, ErrSuspended
	}
	var raw []byte
	if err == nil && result != nil {
		raw, err = resultAs(d.source.codec, result)
	}
	return judge(err, d), raw, err
}

func resultAs(codec Codec, result any) (raw []byte, err error) {
	failure := guard.Call(func() (failure error) { raw, failure = encoded(codec, result); return failure })
	if failure != nil {
		return nil, &ResultError{Err: failure}
	} else if len(raw) > resultBytes {
		return nil, &ResultError{Err: errors.New(unstorable(len(raw))), isTooLarge: true}
	}
	return raw, nil
}

func unstorable(bytes int) string { return fmt.Sprintf("result cannot be stored: %d bytes", bytes) }
