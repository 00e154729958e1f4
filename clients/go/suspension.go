package dq

import (
	"fmt"
	"strings"
)

const (
	mostNames = 10 // in an error
	unheld    = "AFTER names a job that the queue does not hold"
)

func someOf(ids []string) string {
	if left := len(ids) - mostNames; left > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:mostNames], ", "), left)
	}
	return strings.Join(ids, ", ")
}

// once returns each id once, in their order.
func once(ids []string) (each []string) {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			each = append(each, id)
		}
	}
	return each
}

// suspension gives a job back until something happens: the commands to execute before, and then the options of the
// NACK. The server must hold the jobs of after, or refuses it.
type suspension struct {
	before [][]string
	rest   []string
	after  []string
}

// wayOut adds to the server's error what to do where it does not hold a job that is waited for.
func (s *suspension) wayOut(said string) string {
	if len(s.after) == 0 || !strings.Contains(said, unheld) {
		return said
	}
	return said + ": it has ended, or was never added. Add it with a Keep, or by Spawn (waited for: " + someOf(once(s.after)) + ")"
}
