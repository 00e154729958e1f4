package dq

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

// Progress reports how far the job is, from 0 to 1, with a text, which may be empty. [JobInfo].Progress shows both. The
// worker sends at most one report a second, and always the last one.
func (j *Job) Progress(fraction float64, text string) error {
	if !(0 <= fraction && fraction <= 1) {
		return fmt.Errorf("dq: progress is from 0 to 1, not %v", fraction)
	}
	d, err := j.running()
	if err != nil {
		return err
	}
	said := strconv.FormatFloat(math.Round(fraction*1000)/1000, 'f', -1, 64)
	if text != "" {
		said = guard.Clip(said+" "+text, progressBytes)
	}
	if d.link == nil {
		_, err := d.source.do(d.ctx, words{"DQ.TOUCH", d.queue, d.id, "TOKEN", d.token, "PROGRESS", said})
		return err
	}
	d.link.note(d, said)
	return nil
}

func (l *link) note(d *delivery, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !d.isHeld {
		return
	}
	d.progress.text = text
	if s := &l.schedule; s.progress.IsZero() || d.progress.after.Before(s.progress) {
		s.progress = d.progress.after
		if s.progress.IsZero() { // the first
			s.progress = time.Now()
		}
		l.wake()
	}
}

// sendProgress sends the reports that are due of the jobs in hand.
func (l *link) sendProgress() error {
	sent := l.dueProgress(time.Now())
	if len(sent) == 0 {
		return nil
	}
	commands := make([][]string, len(sent))
	for at, each := range sent {
		commands[at] = progressCommand(each.of, each.text)
	}
	replies, err := l.control.ask(commands...)
	if err != nil {
		l.notReported(sent)
		return err
	}
	l.sent(sent)
	for at, reply := range replies {
		if reply == nil {
			l.lose(sent[at].of)
		}
	}
	return nil
}

func (l *link) sent(all []saying) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, each := range all {
		each.of.progress.onItsWay = ""
	}
}

// notReported keeps reports that may not have arrived, unless the handler has made a newer one.
func (l *link) notReported(all []saying) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, each := range all {
		p := &each.of.progress
		p.text = p.take()
		l.schedule.progress = p.after
	}
}

type saying struct {
	of   *delivery
	text string
}

func (l *link) dueProgress(now time.Time) (sent []saying) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.schedule
	if s.progress.IsZero() || now.Before(s.progress) {
		return nil
	}
	s.progress = time.Time{}
	for _, d := range l.heldLocked() {
		if d.progress.text == "" {
			continue
		}
		text, when := d.progress.due(now)
		if text != "" {
			sent = append(sent, saying{d, text})
		} else if s.progress.IsZero() || when.Before(s.progress) {
			s.progress = when
		}
	}
	return sent
}
