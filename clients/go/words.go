package dq

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

type words []any

func (w words) add(more ...any) words { return append(w, more...) }

func (w words) value(name string, value any, isSet bool) words {
	if isSet {
		return append(w, name, value)
	}
	return w
}

func (w words) flag(name string, isSet bool) words {
	if isSet {
		return append(w, name)
	}
	return w
}

func (w words) ms(name string, d time.Duration) words { return w.value(name, wait(name, d), d != 0) }

// latest is the latest instant of the server, and its longest wait, in milliseconds.
const latest = 1<<42 - 1

// between is a number as an argument. One out of bounds becomes a *ConfigurationError, which [words.mistake] finds.
func between(name string, value int64, unit string, first, last int64) any {
	if value < first || value > last {
		what := fmt.Sprintf("%s: %d%s is not between %d and %d", strings.ToLower(name), value, unit, first, last)
		return &ConfigurationError{What: what}
	}
	return value
}

// wait converts a duration to an argument.
func wait(name string, d time.Duration) any { return between(name, resp.Ms(d), " ms", 0, latest) }

// named is the name of a group or a signal.
func named(name, text string) any { return bounded(name, text, 256) }

// bounded is a text that the server keeps with a job.
func bounded(name, text string, most int64) any {
	if found, isWrong := between(name, int64(len(text)), " bytes", 1, most).(*ConfigurationError); isWrong {
		return found
	}
	return text
}

// checkID refuses what is no id.
func checkID(id string) error {
	if id == "*" {
		return &ConfigurationError{What: `id: "*" is not an id; leave it out for a new one`}
	}
	return words{between("id", int64(len(id)), " bytes", 1, 1024)}.mistake()
}

// mistake returns the first invalid argument, so that the caller gets the error before anything is sent.
func (w words) mistake() error {
	for _, word := range w {
		if found, ok := word.(*ConfigurationError); ok {
			return found
		}
	}
	return nil
}

func (w words) instant(name string, at time.Time) words {
	if at.IsZero() {
		return w
	}
	return append(w, name, between(name, resp.InstantMs(at), " ms", 0, latest))
}

// ladder appends BACKOFF. nil: the option is not sent; empty: the job has no backoff.
func (w words) ladder(steps []time.Duration) words {
	if steps == nil {
		return w
	}
	w = append(w, "BACKOFF", between("backoff", int64(len(steps)), " steps", 0, 1024))
	for _, step := range steps {
		w = append(w, wait("backoff", step))
	}
	return w
}

// texts returns the arguments as they are sent.
func (w words) texts() []string {
	out := make([]string, len(w))
	for at, word := range w {
		switch word := word.(type) {
		case []byte:
			out[at] = string(word)
		case string:
			out[at] = word
		default:
			out[at] = fmt.Sprint(word) // a number
		}
	}
	return out
}

// size is about how many bytes are sent.
func (w words) size() (total int) {
	for _, word := range w {
		switch word := word.(type) {
		case []byte:
			total += len(word)
		case string:
			total += len(word)
		}
	}
	return total
}

func (w words) ids(ids []string) words {
	for _, id := range ids {
		w = append(w, id)
	}
	return w
}
