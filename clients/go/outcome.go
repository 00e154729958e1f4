package dq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	shortestDelay    = 100 * time.Millisecond // no handler can make its job come back faster than that
	unknownKindDelay = 5 * time.Second
	reasonBytes      = 1024
)

type verdict int

const (
	open verdict = iota
	settled
	lost
)

// outcome is what the server is still to be told of a delivery that ended: a command, then, by its answer, another
// command or a verdict.
type outcome struct {
	job     *Job
	command []string
	next    func(reply any) (command []string, v verdict)
}

// answered says what that answer means; with open, the command is the next one.
func (o *outcome) answered(reply any) verdict {
	then, v := o.next(reply)
	if v == open {
		o.command, o.next = then, nackAnswered
	}
	return v
}

func nackAnswered(reply any) ([]string, verdict) {
	if reply == nil {
		return nil, lost
	}
	return nil, settled
}

func ackAnswered(reply any) ([]string, verdict) {
	if reply == int64(0) {
		return nil, lost
	}
	return nil, settled
}

func done(job *Job) *outcome {
	return &outcome{job, []string{"DQ.ACK", job.Queue, "WITHTOKENS", job.ID, job.Token}, ackAnswered}
}

func nack(job *Job, options ...string) []string {
	return append([]string{"DQ.NACK", job.Queue, job.ID, "TOKEN", job.Token}, options...)
}

// returned gives the job back, as if it had not been delivered.
func returned(job *Job, options ...string) *outcome {
	return &outcome{job, nack(job, append([]string{"SILENT"}, options...)...), nackAnswered}
}

// unknown gives it back for a worker that knows its kind, a little later.
func unknown(job *Job) *outcome {
	delay := time.Duration(float64(unknownKindDelay) * (1 + rand.Float64()))
	return returned(job, "DELAY", ms(delay))
}

// ended is what follows from how its handler ended.
func ended(job *Job, err error) *outcome {
	var snooze *SnoozeError
	var giveUp *GiveUpError
	switch {
	case err == nil:
		return done(job)
	case errors.As(err, &giveUp):
		return &outcome{job, nack(job, "FATAL", "REASON", reason(err)), nackAnswered}
	case errors.As(err, &snooze):
		options := []string{"DELAY", waitMs(snooze.Delay)}
		if snooze.Reason != "" {
			options = append(options, "REASON", snooze.Reason)
		}
		return returned(job, options...)
	case job.why() == ErrStopping && !isRetry(err):
		return returned(job) // whatever its error: it was told to end
	}
	return failed(job, err)
}

func isRetry(err error) bool {
	var retry *RetryError
	return errors.As(err, &retry)
}

// failed asks first: whether the job has a ladder and a limit of its own only its queue knows.
func failed(job *Job, err error) *outcome {
	decide := func(reply any) ([]string, verdict) {
		fields := asMap(reply)
		if fields == nil || asText(fields["token"]) != job.Token {
			return nil, lost
		}
		return afterFailure(job, err, fields), open
	}
	return &outcome{job, []string{"DQ.GET", job.Queue, job.ID}, decide}
}

func afterFailure(job *Job, err error, fields map[string]any) []string {
	h := job.handler
	var retry *RetryError
	said := []string{"REASON", reason(err)}
	if fields["max-attempts"] == int64(0) && h != nil && 0 < h.Attempts && h.Attempts <= job.Attempt {
		return nack(job, append([]string{"FATAL"}, said...)...)
	}
	if errors.As(err, &retry) {
		return nack(job, append([]string{"DELAY", waitMs(retry.Delay)}, said...)...)
	}
	if ladder, _ := fields["backoff"].([]any); len(ladder) > 0 || h == nil {
		return nack(job, said...)
	}
	return nack(job, append([]string{"DELAY", waitMs(h.delay(job.Attempt))}, said...)...)
}

func waitMs(delay time.Duration) string { return ms(max(delay, shortestDelay)) }

// ms is in whole milliseconds, rounded up: no wait is shorter than asked for.
func ms(d time.Duration) string { return strconv.FormatInt(toMs(d), 10) }

func toMs(d time.Duration) int64 {
	whole := d.Milliseconds()
	if d > time.Duration(whole)*time.Millisecond {
		whole++
	}
	return whole
}

// reason is the error's type and message, but for what a handler says on purpose.
func reason(err error) string {
	text := fmt.Sprintf("%T: %v", err, err)
	var giveUp *GiveUpError
	var retry *RetryError
	var panicked *PanicError
	switch {
	case errors.As(err, &giveUp), errors.As(err, &retry), errors.As(err, &panicked):
		text = err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		text = err.Error()
	}
	return shorten(strings.ToValidUTF8(text, "?"), reasonBytes)
}

func shorten(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// --- Heartbeats, and what is given back in the end

func byKey(jobs []*Job) map[string][]*Job {
	groups := map[string][]*Job{}
	for _, job := range jobs {
		groups[job.Queue] = append(groups[job.Queue], job)
	}
	return groups
}

func forAll(command, key string, jobs []*Job, options ...string) []string {
	words := make([]string, 0, 4+2*len(jobs)+len(options))
	words = append(words, command, key, "IDS", strconv.Itoa(len(jobs)))
	for _, job := range jobs {
		words = append(words, job.ID, job.Token)
	}
	return append(words, options...)
}
