package dq

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

// The batcher: the goroutine that uses a link's control connection. See link.

func (l *link) runBatcher() {
	defer close(l.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	troubles := 0
	_ = l.control.open() // at once: a server that stands still can be told only on a connection that is there
	for {
		timer.Reset(l.untilNext())
		select {
		case <-l.woken:
		case <-timer.C:
		case <-l.finishing:
			l.finish()
			return
		}
		l.control.timeout = l.patience()
		// Heartbeats first, so that no command that the server refuses keeps leases from being renewed.
		err := l.beat()
		for _, next := range []func() error{l.wakeListeners, l.endRecalled, l.sendProgress, l.round} {
			if err == nil {
				err = next()
			}
		}
		if err == nil {
			troubles = 0
			continue
		}
		l.control.fail(err)
		l.beatAtOnce()
		troubles++
		l.worker.trouble(err)
		select {
		case <-time.After(min(trouble.Pause(troubles), max(l.patience(), shortestBeat))):
		case <-l.finishing:
		}
		l.wake()
	}
}

func (l *link) round() error {
	if l.worker.isDraining() {
		if again, err := l.withdraw(); err != nil || again == 0 {
			l.cutFetch()
			if err != nil {
				return err
			}
		} else if again < time.Hour {
			time.AfterFunc(again, l.wake)
		}
	} else if waiting := l.pending(); 0 < waiting && waiting < gatherUpTo {
		time.Sleep(gatherFor) // so that a fetch may take them along
	}
	return l.tellSome()
}

func (l *link) tellAll() error {
	for l.pending() > 0 {
		if err := l.tellSome(); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) tellSome() error {
	told := l.takeOutcomes(tellAtOnce)
	if len(told) == 0 {
		return nil
	}
	if err := l.control.send(pack(nil, told)); err != nil {
		l.countCut(told, err, l.control.isUp())
		l.putBack(told, l.control.isUp())
		return err
	}
	untold, err := l.hear(l.control, told)
	l.countCut(untold, err, true)
	l.putBack(untold, true)
	if l.pending() > 0 {
		l.wake()
	}
	return err
}

// withdraw ends the fetch that waits, once. A job that was delivered in that instant is read, and given back. It returns
// when to ask again: while the server is paused the fetch does not wait yet. 0: the connection can only be closed.
func (l *link) withdraw() (again time.Duration, err error) {
	if !l.isFetching.Load() {
		return time.Hour, nil
	}
	of := l.waiting.known.Load()
	if of == nil || l.mayNotUnblock.Load() {
		return 0, nil
	}
	isDone, err := l.unblock(of)
	switch {
	case err != nil || l.mayNotUnblock.Load():
		return 0, err
	case isDone:
		return unblocked, nil
	}
	return unblockAgain, nil
}

func (l *link) cutFetch() {
	if l.isFetching.Load() {
		l.waiting.cut()
	}
}

// finish sends the outcomes that are left, and gives back all other jobs.
func (l *link) finish() {
	commands := l.givingBack()
	for troubles := 1; ; troubles++ {
		err := l.control.order(commands)
		if err == nil {
			commands = nil
			l.hasGivenBack()
			err = l.tellAll()
		}
		if fatal(err) != nil { // what the server forbids it will forbid again
			_ = l.tellAll()
			return
		}
		if err == nil && l.hasSupplied() {
			return
		}
		if err == nil {
			continue
		}
		l.control.fail(err)
		pause := trouble.Pause(troubles)
		if by, _ := l.patient.Deadline(); time.Now().Add(pause).After(by) {
			return
		}
		select {
		case <-time.After(pause):
		case <-l.patient.Done():
			return
		}
	}
}

// hasSupplied waits for the supplier, which may hold outcomes that went with a fetch whose reply is outstanding. It
// says whether no outcome is left to send.
func (l *link) hasSupplied() bool {
	for patience := time.Now().Add(telling / 4); l.isFetching.Load() && time.Now().Before(patience); {
		again, err := l.withdraw()
		if err != nil || again == 0 {
			break
		}
		select {
		case <-l.supplied:
		case <-time.After(min(again, unblockAgain)):
		}
	}
	l.cutFetch()
	select {
	case <-l.supplied:
	case <-l.patient.Done():
		return true
	}
	return l.pending() == 0
}

// givingBack returns the commands that give back all jobs in hand, until they have been answered.
func (l *link) givingBack() [][]string {
	l.returning.Lock()
	defer l.returning.Unlock()
	for key, group := range byKey(l.held()) {
		left := group[:0]
		for _, d := range group {
			if l.release(d) {
				d.end(ErrStopping)
				left = append(left, d)
			}
		}
		if len(left) > 0 {
			l.worker.givesBack(len(left))
			l.returns = append(l.returns, forAll("DQ.NACK", key, left, "SILENT"))
		}
	}
	return slices.Clone(l.returns)
}

func (l *link) hasGivenBack() {
	l.returning.Lock()
	defer l.returning.Unlock()
	l.returns = nil
}

// --- A fetch gives way to the fetches of other links

// recall asks the batcher to end the fetch. It is called with the worker's mu.
func (l *link) recall() {
	if !l.mayNotUnblock.Load() {
		l.isRecalled.Store(true)
		l.wake()
	}
}

// endRecalled ends the fetch that waits, if it was recalled.
func (l *link) endRecalled() error {
	of := l.waiting.known.Load()
	if !l.isRecalled.Swap(false) || !l.isFetching.Load() || of == nil {
		return nil
	}
	_, err := l.unblock(of)
	return err
}

// unblock ends the command that waits on another connection, unless the server forbids it.
func (l *link) unblock(of *connection) (isDone bool, err error) {
	if l.mayNotUnblock.Load() {
		return false, nil
	}
	isDone, err = l.control.unblock(of)
	if trouble.IsForbidden(err) {
		l.mayNotUnblock.Store(true)
		l.worker.off("DQ.UNBLOCK", "connections that wait are closed instead", err)
		return false, nil
	}
	return isDone, err
}

// longestWait is how long a fetch may wait: briefly if other links may want its places and it cannot be recalled.
func (l *link) longestWait() time.Duration {
	isRecallable := l.waiting.known.Load() != nil && !l.mayNotUnblock.Load()
	if !l.isOneOfSeveral || isRecallable {
		return l.wait
	}
	return min(l.wait, turnPause)
}

// --- Orders of the worker

func (l *link) tellJobs() {
	for _, d := range l.held() {
		d.end(ErrStopping)
	}
}

// finishWithin tells the server all that is left, as long as ctx lasts.
func (l *link) finishWithin(ctx context.Context) {
	l.patient = ctx
	close(l.finishing)
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	l.schedule.watch.Stop()
	l.cutListeners()
	l.control.part(l.unsent(l.givingBack()))
	l.waiting.cut()
	l.control.cut()
}

// unsent returns these commands, and those of outcomes that no write took along yet, as an earlier reply is outstanding: a
// server that stands still executes them when it goes on. What is given back waits for a while: the server may read the last
// fetch after this, and before it knows that the connection is closed.
func (l *link) unsent(commands [][]string) (packed []byte) {
	if !l.control.mayPart() {
		return nil
	}
	for _, each := range commands {
		packed = resp.Append(packed, append(each, "DELAY", resp.MsText(inHandDelay)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, each := range l.outcomes {
		if each.mode == "SILENT" && each.wait == unsaid {
			each.wait, each.isOwnWait = inHandDelay, true
		}
		if len(packed)+each.size() <= partingBytes {
			packed = each.pack(packed)
			each.wasSent = true
		}
	}
	return packed
}

// countCut counts the outcomes that may be why the server cut the connection: none is sent for a third time.
func (l *link) countCut(untold []*outcome, err error, wasSent bool) {
	if err == nil || !wasSent || resp.IsError(err) || errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	for _, each := range untold {
		size := each.size()
		if size < cuttingBytes {
			continue
		}
		if each.cuts++; each.cuts >= mostCuts {
			l.worker.warn("dq: how a job ended has cut the connection twice: not sent again", "job", each.of.id, "bytes", size)
			each.cut(size)
		}
	}
}
