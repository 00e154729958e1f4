package dq

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

var errClosed = errors.New("dq: the queue was closed")

// --- What is waited for, without I/O

type waitResult struct {
	ending
	err error
}

// awaited are the waits for jobs of one key.
type awaited struct {
	by    map[string][]chan waitResult
	asked map[string]bool // the jobs that the running DQ.AWAIT names; nil: none is running
}

// add records a wait. It says whether the running DQ.AWAIT lacks a job that is waited for.
func (a *awaited) add(id string, told chan waitResult) (isBehind bool) {
	if a.by == nil {
		a.by = map[string][]chan waitResult{}
	}
	a.by[id] = append(a.by[id], told)
	return a.isBehind()
}

func (a *awaited) isBehind() bool {
	if a.asked == nil {
		return false
	}
	for id := range a.by {
		if !a.asked[id] {
			return true
		}
	}
	return false
}

func (a *awaited) drop(id string, told chan waitResult) {
	a.by[id] = slices.DeleteFunc(a.by[id], func(each chan waitResult) bool { return each == told })
	if len(a.by[id]) == 0 {
		delete(a.by, id)
	}
}

// ask returns the jobs for the next DQ.AWAIT.
func (a *awaited) ask() []string {
	ids := make([]string, 0, len(a.by))
	a.asked = make(map[string]bool, len(a.by))
	for id := range a.by {
		ids = append(ids, id)
		a.asked[id] = true
	}
	return ids
}

func (a *awaited) ended(all []ending) {
	a.asked = nil
	for _, each := range all {
		for _, told := range a.by[each.id] {
			told <- waitResult{ending: each}
		}
		delete(a.by, each.id)
	}
}

func (a *awaited) fail(err error) {
	a.asked = nil
	for _, all := range a.by {
		for _, told := range all {
			told <- waitResult{err: err}
		}
	}
	a.by = nil
}

// --- The connections

// waits has the waiters of a queue, one for each key.
type waits struct {
	mu       sync.Mutex
	byKey    map[string]*waiter
	isClosed bool
}

func (all *waits) of(client redis.UniversalClient, key string) (*waiter, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.isClosed {
		return nil, errClosed
	}
	if all.byKey == nil {
		all.byKey = map[string]*waiter{}
	}
	w := all.byKey[key]
	if w == nil {
		w = &waiter{closed: make(chan struct{}), key: key}
		w.line = &line{client: client, key: key, timeout: defaultWait + slack}
		w.ending = &line{client: client, key: key, timeout: longestAnswer}
		all.byKey[key] = w
	}
	return w, nil
}

func (all *waits) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !all.isClosed {
		all.isClosed = true
		for _, w := range all.byKey {
			w.close()
		}
	}
}

type waiter struct {
	key    string
	line   *line
	ending *line // to end the running DQ.AWAIT; of withdraw
	closed chan struct{}

	mu            sync.Mutex
	awaited       awaited
	isHearing     bool
	isWithdrawing bool
}

func (w *waiter) add(id string) chan waitResult {
	told := make(chan waitResult, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	isBehind := w.awaited.add(id, told)
	if !w.isHearing {
		w.isHearing = true
		go w.hear()
	}
	if isBehind && !w.isWithdrawing {
		w.isWithdrawing = true
		go w.withdraw()
	}
	return told
}

func (w *waiter) close() {
	close(w.closed)
	w.line.cut()
	w.ending.cut()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited.fail(errClosed)
}

// hear sends DQ.AWAIT as long as anyone waits.
func (w *waiter) hear() {
	for troubles := 0; ; {
		w.mu.Lock()
		ids := w.awaited.ask()
		w.isHearing = len(ids) > 0
		w.mu.Unlock()
		if len(ids) == 0 {
			return
		}
		all, err := w.ask(ids)
		end := fatal(err)
		w.mu.Lock()
		switch {
		case isClosed(w.closed):
			w.awaited.fail(errClosed)
		case end != nil:
			w.awaited.fail(end)
		default:
			w.awaited.ended(all)
		}
		w.mu.Unlock()
		if err == nil {
			troubles = 0
			continue
		}
		w.line.close()
		troubles++
		select {
		case <-w.closed:
		case <-time.After(trouble.Pause(troubles)):
		}
	}
}

func (w *waiter) ask(ids []string) ([]ending, error) {
	command := append([]string{"DQ.AWAIT", w.key, strconv.FormatFloat(defaultWait.Seconds(), 'f', -1, 64), "IDS", strconv.Itoa(len(ids))}, ids...)
	replies, err := w.line.ask(command)
	if err != nil {
		return nil, err
	}
	if said := resp.FirstError(replies); said != nil {
		return nil, said
	}
	return endingsOf(replies[0]), nil
}

// withdraw ends the running DQ.AWAIT, so that it is sent again with all jobs that are waited for. If DQ.UNBLOCK is
// forbidden, it closes the connection instead.
func (w *waiter) withdraw() {
	for isBehind := true; isBehind; {
		if of := w.line.known.Load(); of != nil {
			_, err := w.ending.unblock(of)
			if trouble.IsForbidden(err) || err == nil && of.peer != w.ending.peer {
				w.line.drop()
			}
			if err != nil && !resp.IsError(err) || of.peer != w.ending.peer {
				w.ending.close()
			}
			if isBehind = err == nil; !isBehind && !trouble.IsForbidden(err) {
				time.Sleep(unblockAgain)
				isBehind = !isClosed(w.closed)
			}
		}
		time.Sleep(betweenAsks)
		w.mu.Lock()
		isBehind = isBehind && w.awaited.isBehind()
		w.isWithdrawing = isBehind
		w.mu.Unlock()
	}
}

func isClosed(channel chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
