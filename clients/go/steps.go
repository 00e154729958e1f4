package dq

import (
	"fmt"
	"strings"
	"time"
)

const (
	ours         = "dq:"            // prefix of the library's step names
	unknownStep  = ours + "unknown" // counts the deliveries to workers that did not know the job's kind
	afterPrefix  = ours + "after:"
	waitPrefix   = ours + "wait:"
	waiting      = "waiting"
	timedOut     = "over"
	longestName  = 256
	shortestStep = 20 * time.Millisecond // between two tries while the server cannot be reached
)

// steps are the steps that a job has kept, and those that this attempt has reached. They are guarded by delivery.mu.
type steps struct {
	kept map[string][]byte
	used map[string]bool
	wait int // how many waits for other jobs this attempt has reached
}

// use records that this attempt has reached a step; a name may be used once in each attempt.
func (s *steps) use(name string) error {
	if s.used[name] {
		return fmt.Errorf("dq: %q was used already in this attempt: each step, sleep and wait needs a name of its own", name)
	}
	if s.used == nil {
		s.used = map[string]bool{}
	}
	s.used[name] = true
	return nil
}

func checkName(name, prefix string) error {
	switch longest := longestName - len(prefix); {
	case name == "" || len(name) > longest:
		return fmt.Errorf("dq: names of steps have 1 to %d bytes, not %d", longest, len(name))
	case strings.HasPrefix(name, ours):
		return fmt.Errorf("dq: names of steps that begin with %q are the library's: %q", ours, name)
	}
	return nil
}

func (s *steps) keep(name string, value []byte) {
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[name] = value
}
