// Package idle asks why a link gets no jobs, where it has got none for a minute.
package idle

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// After is how long a link gets nothing before it asks. Tests set it.
var After = time.Minute

const mostKeys = 100

// Idle is how long the fetches of a link have waited in vain. The next one then takes DQ.EXPLAIN along, and delays
// nothing. It belongs to the supplier.
type Idle struct {
	Keys   []string
	waited time.Duration
	isSaid bool // in this time without jobs
}

// Fetched takes the end of a fetch.
func (i *Idle) Fetched(isAny bool, waited time.Duration) {
	if isAny {
		i.waited, i.isSaid = 0, false
	} else {
		i.waited += waited
	}
}

// Asks returns the keys that the next fetch asks about.
func (i *Idle) Asks() []string {
	if i.waited < After || i.isSaid {
		return nil
	}
	i.waited = 0
	return i.Keys[:min(len(i.Keys), mostKeys)]
}

// Heard takes a reply. It returns why jobs that are ready are not delivered; "" if none is, or nothing holds them: this
// fetch gets them.
func (i *Idle) Heard(reply any) string {
	var reasons []string
	for _, each := range resp.List(reply) {
		row := resp.List(each)
		if len(row) != 3 {
			return ""
		}
		switch code := resp.Text(row[0]); code {
		case "delayed", "blocked", "reserved", "empty":
			return ""
		case "idle":
		default:
			reasons = append(reasons, shown(code, row))
		}
	}
	i.isSaid = i.isSaid || len(reasons) > 0
	return strings.Join(reasons, ", ")
}

func shown(code string, row []any) string {
	if row[1] != nil {
		code = fmt.Sprintf("%s %d", code, resp.Int(row[1]))
	}
	if row[2] == nil {
		return code
	}
	seconds := (time.Until(resp.Time(row[2])) + time.Second - 1) / time.Second
	return fmt.Sprintf("%s for %d s", code, max(0, seconds))
}
