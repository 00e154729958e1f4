package dq

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// BPop waits for ready jobs for up to timeout (0: without limit), and no longer than ctx lasts. It does not work with a
// sharded queue in a cluster.
func (q *Queue) BPop(ctx context.Context, timeout time.Duration, options *PopOptions) ([]Reserved, error) {
	o := cmp.Or(options, &PopOptions{})
	if err := (words{wait("timeout", timeout)}).mistake(); err != nil {
		return nil, err
	}
	isCut := false
	if deadline, ok := ctx.Deadline(); ok { // so the server ends the wait, and delivers no job too late
		if left := max(time.Until(deadline), time.Millisecond); timeout == 0 || left < timeout {
			timeout, isCut = left, true
		}
	}
	call := words{"DQ.BPOP"}.ids(q.keys).add(strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64))
	call = call.add("COUNT", max(1, o.Count)).add(o.words()...)
	if err := call.mistake(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	patience := timeout + slack
	if timeout == 0 {
		patience = forever
	}
	p := &popping{queue: q, line: q.spare.take(q.client, q.keys[0], patience), ended: make(chan struct{})}
	found, err := within(ctx, func() ([]Reserved, error) {
		defer close(p.ended)
		return p.pop(call)
	})
	if err != nil && ctx.Err() != nil {
		go p.withdraw(context.WithoutCancel(ctx))
		return nil, err
	}
	q.spare.put(p.line, err)
	if isCut && err == nil && len(found) == 0 {
		err = context.DeadlineExceeded
	}
	return found, err
}

// popping is a BPop that waits on a connection of its own: the timeout of the client's connections may be shorter, and
// would cut the wait off.
type popping struct {
	queue *Queue
	line  *line
	ended chan struct{}
	found []Reserved // found and err are valid once ended is closed
	err   error
}

func (p *popping) pop(call words) ([]Reserved, error) {
	replies, err := p.line.ask(call.texts())
	if p.err = err; err == nil {
		var reply any
		reply, p.err = answered(call, replies[0], resp.FirstError(replies))
		if pair := resp.List(reply); len(pair) == 2 {
			p.found = p.queue.reservedOf(resp.Text(pair[0]), resp.List(pair[1]))
		}
	}
	return p.found, p.err
}

// withdraw ends a wait whose caller has gone. A job that was delivered in that instant is given back.
func (p *popping) withdraw(ctx context.Context) {
	control := p.queue.spare.take(p.queue.client, p.queue.keys[0], longestAnswer)
	tired := time.After(slack)
	var err error
	for pause := time.Duration(0); ; {
		select {
		case <-p.ended:
			p.queue.spare.put(control, err)
			p.queue.spare.put(p.line, p.err)
			for _, job := range p.found {
				if job.Token != "" {
					_, _ = p.queue.Nack(ctx, job.ID, job.Token, &NackOptions{Mode: Silent})
				}
			}
			return
		case <-tired:
			p.line.cut()
		case <-time.After(pause):
		}
		if at := p.line.known.Load(); at != nil && err == nil {
			if _, err = control.unblock(at); err != nil || control.peer != at.peer {
				p.line.cut()
			}
		}
		pause = min(max(2*pause, betweenAsks), unblockAgain)
	}
}

func (q *Queue) reservedOf(key string, rows []any) []Reserved {
	var found []Reserved
	for _, row := range rowsOf(rows) {
		found = append(found, Reserved{
			key, row.id, row.payload, row.token, row.attempt, row.deadline, row.due,
			row.terms.ttr, row.terms.maxAttempts, row.terms.ladder, resultsOf(row.results, q.codec), row.steps,
		})
	}
	return found
}
