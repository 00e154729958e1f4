package dq

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RefusedError says that the server refuses a command. It wraps go-redis' error. What the server's answer does not tell is
// "" or nil.
type RefusedError struct {
	// Code is the first word of the answer: ERR, NOPERM, OOM, WRONGTYPE, ... Said is the rest.
	Code, Said string
	// ID is the job's.
	ID string
	// Argument is what is refused, such as "tz", and Value what that was.
	Argument string
	Value    any

	command, queue string
	cause          error
}

func (e *RefusedError) Error() string {
	what := cmp.Or(e.Argument, e.command)
	switch value := e.Value.(type) {
	case nil:
	case string:
		what = fmt.Sprintf("%s=%q", what, value)
	default:
		what = fmt.Sprintf("%s=%v", what, value)
	}
	of := "dq: "
	if e.ID != "" {
		of += fmt.Sprintf("job %q of ", e.ID)
	}
	if e.queue != "" {
		of += fmt.Sprintf("queue %q: ", e.queue)
	}
	return fmt.Sprintf("%sthe server refused %s: %s %s", of, what, e.Code, e.Said)
}

func (e *RefusedError) Unwrap() error { return e.cause }

// Is says that the queue is full ([ErrQueueFull]), if that is why.
func (e *RefusedError) Is(target error) bool {
	return target == ErrQueueFull && (e.Code == "MAXLEN" || e.Code == "MAXBYTES")
}

// ofOneJob are commands that name a job after the key. Those that may name many say so by IDS and their number.
var ofOneJob = []any{"DQ.ADD", "DQ.GET", "DQ.NACK", "DQ.TOUCH", "DQ.STEP", "DQ.SIGNAL", "DQ.EXPLAIN", "DQ.NEXT"}

const shownBytes = 1100 // of a word of a command, in an error

// refused is the error for what the server says to a call.
func refused(call words, cause error) *RefusedError {
	e := &RefusedError{command: shown(call[0]).(string), cause: cause}
	e.Code, e.Said, _ = strings.Cut(cause.Error(), " ")
	rest := call[1:]
	switch e.command {
	case "EVAL":
		rest = rest[2:]
		fallthrough
	default:
		e.queue, rest = fmt.Sprint(shown(rest[0])), rest[1:]
	case "DQ.UNBLOCK": // of connections
	}
	if slices.Contains(ofOneJob, call[0]) && len(rest) > 0 && !rest.isMany() {
		e.ID, rest = fmt.Sprint(shown(rest[0])), rest[1:]
	}
	said := strings.Fields(e.Said)
	for at := 0; at+1 < len(rest) && !rest[at:].isMany(); at++ {
		word, isText := rest[at].(string)
		if isText && word == strings.ToUpper(word) && slices.Contains(said, word) {
			e.Argument, e.Value = strings.ToLower(word), shown(rest[at+1])
			break
		}
	}
	return e
}

// isMany says whether many ids begin here.
func (w words) isMany() bool {
	if len(w) < 2 || w[0] != "IDS" {
		return false
	}
	_, isCount := w[1].(int)
	return isCount
}

// shown is a word of a command as an error holds it.
func shown(word any) any {
	if raw, isBytes := word.([]byte); isBytes {
		word = string(raw[:min(len(raw), shownBytes)])
	}
	if text, isText := word.(string); isText {
		return text[:min(len(text), shownBytes)]
	}
	return word
}

// TimedOutError says that what was waited for did not come in time. It wraps [context.DeadlineExceeded].
type TimedOutError struct {
	ID      string // the job's
	Timeout time.Duration

	signal string // what the job waited for; "": its own end was waited for
}

func (e *TimedOutError) Error() string {
	if e.signal != "" {
		return fmt.Sprintf("dq: job %q: no signal %q within %s", e.ID, e.signal, e.Timeout)
	}
	return fmt.Sprintf("dq: job %q has not ended within %s", e.ID, e.Timeout)
}

func (e *TimedOutError) Unwrap() error { return context.DeadlineExceeded }
