package dq

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

const togetherTries = 5

// together adds jobs of one key in one transaction, and returns their ids. If the answer is lost, it asks for the last
// one: if that is there, so are the others. They are sent again only if it is not, and none of the others ran.
func (q *Queue) together(ctx context.Context, jobs []NewJob, all []adds) ([]string, error) {
	if slices.ContainsFunc(all, func(each adds) bool { return each.key != all[0].key }) {
		return nil, &ConfigurationError{What: "jobs that come after each other must be of one shard"}
	}
	last := &jobs[len(jobs)-1]
	s := &sending{queue: q, made: packed(all), isGiven: last.ID != "", kept: max(0, last.Keep)}
	if last.TTL > 0 {
		s.kept = min(s.kept, last.TTL)
	}
	replies, err := within(ctx, func() ([]any, error) { return s.send(ctx) })
	if err != nil && err == ctx.Err() && s.leaves() {
		err = unsure(err)
	}
	if err != nil && replies == nil {
		return nil, err
	}
	if replies != nil {
		return q.idsOf(ctx, jobs, s.made, replies, err)
	}
	ids := make([]string, len(all))
	for at := range all {
		ids[at] = all[at].id
	}
	return ids, nil
}

func unsure(lost error) error {
	return fmt.Errorf("%w: it is not known whether the jobs were added", lost)
}

// sending is a transaction that adds jobs.
type sending struct {
	queue   *Queue
	made    packing
	isGiven bool          // the last one's id is the program's
	kept    time.Duration // how long the last one is there at least: later on, that it is not there says nothing

	mu     sync.Mutex
	isSent bool
	isLeft bool // by its caller: nothing is sent any more
	sentAt time.Time
	lost   error          // what befell the sending before, if nobody knows whether it arrived
	before map[string]any // the job that had the last one's id before
	isOver bool           // nobody will know
}

// send returns the replies; none, and no error, if the jobs were added and the answer was lost.
func (s *sending) send(ctx context.Context) ([]any, error) {
	// A line, as a client sends again by itself what may have been executed.
	l := s.queue.spare.take(s.queue.client, s.made.all[0].key, longestAnswer)
	for tries := 1; ; tries++ {
		replies, err := s.attempt(ctx, l)
		if err == nil || replies != nil {
			s.queue.spare.put(l, nil)
			return replies, err
		}
		l.close()
		if s.isOver || tries == togetherTries || ctx.Err() != nil || resp.IsError(err) && !trouble.Passes(err) {
			if s.lost != nil {
				err = unsure(s.lost)
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
func (s *sending) attempt(ctx context.Context, l *line) ([]any, error) {
	if isDue, err := s.isDue(ctx); err != nil || !isDue {
		return nil, err
	}
	if err := l.open(); err != nil {
		return nil, err // nothing was sent
	}
	if !s.begins(ctx) {
		return nil, ctx.Err()
	}
	replies, err := transacted(l, s.made.calls)
	if s.lost = nil; err != nil && !resp.IsError(err) {
		s.lost = err
	}
	return replies, err
}

// begins says whether the transaction may be sent.
func (s *sending) begins(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isLeft = s.isLeft || ctx.Err() != nil
	s.isSent = s.isSent || !s.isLeft
	return !s.isLeft
}

// leaves says whether the transaction was sent.
func (s *sending) leaves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isLeft = true
	return s.isSent
}

// isDue says whether the transaction must be sent.
func (s *sending) isDue(ctx context.Context) (bool, error) {
	last := len(s.made.all) - 1
	if s.lost == nil {
		if s.isGiven {
			found, err := s.look(ctx, s.made.all[last:])
			if err != nil {
				return false, err
			}
			s.before = found[0]
		}
		s.sentAt = time.Now()
		return true, nil
	}
	found, err := s.look(ctx, s.made.all)
	if err != nil {
		return false, err
	}
	// A job that is still to run is not replaced, so what becomes of it tells nothing. One that has ended does not change.
	isHidden := s.before != nil && !hasEnded(s.before)
	isThere := found[last] != nil
	if isThere && !isHidden && !reflect.DeepEqual(found[last], s.before) {
		return false, nil
	}
	s.isOver = isHidden || !isThere && time.Since(s.sentAt) >= s.kept || slices.ContainsFunc(found[:last], hasBegun)
	if !s.isOver && !isThere {
		if s.isOver, err = s.isBounded(ctx); err != nil {
			return false, err
		}
	}
	if s.isOver {
		return false, s.lost
	}
	return true, nil
}

// isBounded says whether a job that has ended may go before its Keep is over, as others end.
func (s *sending) isBounded(ctx context.Context) (bool, error) {
	reply, err := s.queue.do(ctx, words{"DQ.CFGGET", s.made.all[0].key})
	if trouble.IsForbidden(err) {
		return true, nil
	}
	settings := resp.Map(reply)
	most := max(resp.Int(settings["donelen"]), resp.Int(settings["donebytes"]), resp.Int(settings["deadlen"]))
	return most > 0, err
}

// look returns what the server knows of the jobs; nil where it does not hold one.
func (s *sending) look(ctx context.Context, some []adds) ([]map[string]any, error) {
	calls := make([]words, len(some))
	for at, each := range some {
		calls[at] = words{"DQ.GET", each.key, each.id, "PREFIX", 0}
	}
	replies, err := s.queue.all(ctx, calls)
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
