package dq

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

// listenSoon sets the timer of listen. It is called with mu.
func (l *link) listenSoon() {
	if !l.isWithoutListeners && !l.isListening {
		l.isListening = true
		l.listenTimer.Reset(heardFrom)
	}
}

// listen wakes the listeners of queues whose jobs take a while, or has them ask again.
func (l *link) listen() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isListening = false
	if l.isWithoutListeners || l.isFinishing() {
		return
	}
	soonest := time.Time{}
	for key, held := range byKey(l.heldLocked()) {
		mustWake, isBehind, next := l.listenerOf(key).look(held, now)
		e := l.listeners[key]
		if mustWake {
			e.listen.isAwake = true
			go e.hear()
		}
		if isBehind {
			e.listen.isBehind = true
			l.wake()
		}
		if !next.IsZero() && (soonest.IsZero() || next.Before(soonest)) {
			soonest = next
		}
	}
	if !soonest.IsZero() {
		l.isListening = true
		l.listenTimer.Reset(time.Until(soonest))
	}
}

func (l *link) listenerOf(key string) *listening {
	e := l.listeners[key]
	if e == nil {
		e = &listener{link: l, key: key, line: &line{client: l.waiting.client, key: key, timeout: longestAnswer}}
		l.listeners[key] = e
	}
	return &e.listen
}

// hear sends DQ.BTOUCH as long as there are jobs.
func (e *listener) hear() {
	l := e.link
	for troubles := 0; ; {
		group, wait := e.cover()
		if len(group) == 0 {
			return
		}
		e.line.timeout = wait + slack
		err := e.ask(group, wait)
		if err == nil {
			troubles = 0
			continue
		}
		e.line.close()
		if forbids(err) {
			l.goOnWithoutListeners(err)
			return
		}
		troubles++
		select {
		case <-time.After(trouble.Pause(troubles)):
		case <-l.finishing:
			return
		}
	}
}

func (l *link) goOnWithoutListeners(err error) {
	l.mu.Lock()
	l.isWithoutListeners = true
	l.mu.Unlock()
	l.worker.off("DQ.BTOUCH", "handlers hear of a cancelled job at the next heartbeat", err)
}

func (e *listener) cover() (group []*delivery, wait time.Duration) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isWithoutListeners && !l.isFinishing() {
		group = e.listen.cover(byKey(l.heldLocked())[e.key], time.Now())
	}
	for _, d := range group {
		wait = min(cmp.Or(wait, beatOf(d.lease)), beatOf(d.lease))
	}
	return group, wait
}

// ask is a heartbeat that ends when one of these jobs is lost. The leases that it renews are not recorded: only
// heartbeats count.
func (e *listener) ask(group []*delivery, wait time.Duration) error {
	command := append([]string{"DQ.BTOUCH", e.key, strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)},
		forAll("", "", group)[2:]...)
	replies, err := e.line.ask(command)
	if said := resp.FirstError(replies); err == nil && said != nil {
		err = said
	}
	if err != nil {
		return err
	}
	for at, deadline := range resp.List(replies[0]) {
		if at < len(group) && deadline == nil {
			e.link.lose(group[at])
		}
	}
	return nil
}

func forbids(err error) bool {
	return trouble.IsForbidden(err) || resp.IsError(err) && strings.HasPrefix(err.Error(), "ERR unknown command")
}

// behind returns the connections of listeners whose DQ.BTOUCH is to be ended.
func (l *link) behind() (all []*connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.listeners {
		if of := e.line.known.Load(); e.listen.isBehind && of != nil {
			all = append(all, of)
		}
		e.listen.isBehind = false
	}
	return all
}

// wakeListeners ends the DQ.BTOUCH of listeners that lack jobs, so that they ask again with all. If DQ.UNBLOCK is forbidden,
// they do so when their wait is over.
func (l *link) wakeListeners() error {
	for _, of := range l.behind() {
		if _, err := l.unblock(of); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) cutListeners() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listenTimer.Stop()
	for _, e := range l.listeners {
		e.line.cut()
	}
}

func (l *link) isFinishing() bool { return isClosed(l.finishing) }
