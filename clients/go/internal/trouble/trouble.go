// Package trouble knows which errors of the server pass with time, and how long to wait.
package trouble

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const (
	first         = 50 * time.Millisecond
	longest       = 5 * time.Second
	longestJitter = 0.25
)

// IsForbidden says whether the server forbids this user the command.
func IsForbidden(err error) bool {
	return strings.HasPrefix(resp.Said(err), "NOPERM")
}

// Pause returns how long to wait after the first, second, ... failure to reach the server. The jitter only
// adds.
func Pause(times int) time.Duration {
	grown := float64(first) * math.Pow(2, float64(min(times-1, 62)))
	return time.Duration(min(float64(longest), grown) * (1 + longestJitter*rand.Float64()))
}

// passing are the first words of server errors that pass with time. A script's own error may begin with any other word.
var passing = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY", "MISCONF", "OOM", "NOREPLICAS"}

// Passes says whether a server's error may pass with time; so do all others.
func Passes(err error) bool {
	word, _, _ := strings.Cut(resp.Said(err), " ")
	return word == "" || slices.Contains(passing, word)
}

// Fatal says what to do about an error that waiting does not fix; of all others "".
func Fatal(err error) (what string) {
	text := strings.TrimPrefix(resp.Said(err), "ERR ")
	for _, each := range fatalities {
		if at := strings.Index(text, each.said); at == 0 || at > 0 && !each.isFirst {
			return each.what
		}
	}
	return ""
}
