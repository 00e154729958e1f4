package dq

import (
	"context"
	"time"
)

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
		reply, p.err = answer(replies[0], firstError(replies))
		if pair := asList(reply); len(pair) == 2 {
			p.found = p.queue.reservedOf(asText(pair[0]), asList(pair[1]))
		}
	}
	return p.found, p.err
}

// withdraw ends a wait whose caller has gone. A job that was delivered in that instant is given back.
func (p *popping) withdraw(ctx context.Context) {
	control := p.queue.spare.take(p.queue, longestAnswer)
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
