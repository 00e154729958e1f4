package dq

import (
	"slices"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Explanation is a reason why a queue or a job is not delivered.
type Explanation struct {
	Code   string    // as in the command reference: "paused", "rate", "behind", ...
	Number *int64    // how many, where the code counts something
	Until  time.Time // when time alone ends it, else zero
}

// codesOfQueue are in the server's order.
var codesOfQueue = []string{
	"paused", "maxreserved", "delayed", "blocked", "reserved", "empty", "groups", "rate", "fill", "idle",
}

func explanationsOf(reply any) []Explanation {
	found := []Explanation{}
	for _, each := range resp.List(reply) {
		row := resp.List(each)
		if len(row) < 3 {
			continue
		}
		reason := Explanation{Code: resp.Text(row[0]), Until: resp.Time(row[2])}
		if row[1] != nil {
			number := resp.Int(row[1])
			reason.Number = &number
		}
		found = append(found, reason)
	}
	return found
}

// explanations returns the reasons of all shards, each code once.
func explanations(replies []any) ([]Explanation, error) {
	replies = slices.DeleteFunc(replies, func(reply any) bool { return reply == nil })
	switch len(replies) {
	case 0:
		return nil, ErrNotFound
	case 1:
		return explanationsOf(replies[0]), nil
	}
	byCode := map[string]Explanation{}
	for _, reply := range replies {
		for _, each := range explanationsOf(reply) {
			byCode[each.Code] = each.plus(byCode[each.Code])
		}
	}
	for code := range byCode {
		if !slices.Contains([]string{"paused", "maxreserved", "empty"}, code) {
			delete(byCode, "empty") // other shards have jobs
		}
	}
	sum := []Explanation{}
	for _, code := range codesOfQueue {
		if each, isThere := byCode[code]; isThere {
			sum = append(sum, each)
		}
	}
	return sum, nil
}

// plus adds what another shard says of the same code.
func (e Explanation) plus(other Explanation) Explanation {
	if e.Number == nil {
		e.Number = other.Number
	} else if other.Number != nil {
		*e.Number += *other.Number
	}
	if e.Until.IsZero() || !other.Until.IsZero() && other.Until.Before(e.Until) {
		e.Until = other.Until
	}
	return e
}
