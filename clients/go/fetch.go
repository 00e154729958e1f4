package dq

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// leases decide how long the leases of a worker's deliveries are.
type leases struct {
	option string // of a fetch: TTR for all jobs, LEASE for those that were given no TTR, or ""
	length time.Duration
	worker time.Duration // the worker's own
}

func newLeases(h *handlers, worker time.Duration) leases {
	common := time.Duration(0)
	isFirst := true
	for _, each := range h.byKind {
		if !isFirst && each.Lease != common {
			common = 0
			break
		}
		common, isFirst = each.Lease, false
	}
	if h.other == nil && common > 0 {
		return leases{"TTR", common, worker}
	}
	if worker == 0 && h.other != nil {
		worker = h.other.Lease
	}
	if worker > 0 {
		return leases{"LEASE", worker, worker}
	}
	return leases{}
}

// given is how long the lease of a delivery is when it arrives.
func (l leases) given(ttr time.Duration) time.Duration {
	if l.option == "TTR" || l.option == "LEASE" && ttr == serverTTR {
		return l.length
	}
	return ttr
}

// wanted is how long the lease is to be.
func (l leases) wanted(h *Handler, ttr time.Duration) time.Duration {
	switch {
	case h == nil:
		return l.given(ttr)
	case h.Kind != "" && h.Lease > 0:
		return h.Lease
	case ttr != serverTTR:
		return ttr
	}
	return cmp.Or(h.Lease, l.worker, ttr)
}

// member is a key of a queue, with its weight.
type member struct {
	queue  *Queue
	key    string
	weight float64
}

// fetches are the fetch commands of one waiting connection.
type fetches struct {
	members    []member
	isWeighted bool
	leases     leases
	fill       Fill
	since      time.Time // when the first of the calls began that had to give way while they waited for a batch
}

// command is a BPOP for up to count jobs. Strict order is BPOP's own; with weights each queue comes first in its share
// of the fetches.
func (f *fetches) command(count int, wait time.Duration, now time.Time) []string {
	words := make([]string, 0, len(f.members)+13)
	words = append(words, "DQ.BPOP")
	for _, each := range f.order() {
		words = append(words, each.key)
	}
	seconds := strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)
	words = append(words, seconds, "COUNT", strconv.Itoa(count))
	if f.fill.Jobs > 0 && count > 1 {
		left := f.fill.Wait
		if !f.since.IsZero() {
			left = max(time.Millisecond, left-now.Sub(f.since))
		}
		words = append(words, "FILL", strconv.Itoa(min(f.fill.Jobs, count)), resp.MsText(left))
	}
	words = append(words, extras...)
	if f.leases.option != "" {
		words = append(words, f.leases.option, resp.MsText(f.leases.length))
	}
	return words
}

// fetched ends a call. Where it neither got jobs nor lasted as long as it could, the next one goes on with its wait.
func (f *fetches) fetched(isOver bool, began time.Time) {
	if isOver {
		f.since = time.Time{}
	} else if f.since.IsZero() {
		f.since = began
	}
}

func (f *fetches) order() []member {
	if !f.isWeighted || len(f.members) == 1 {
		return f.members
	}
	type drawn struct {
		member
		draw float64
	}
	draws := make([]drawn, len(f.members))
	for at, each := range f.members {
		draws[at] = drawn{each, math.Pow(rand.Float64(), 1/each.weight)}
	}
	sort.Slice(draws, func(i, j int) bool { return draws[i].draw > draws[j].draw })
	order := make([]member, len(draws))
	for at, each := range draws {
		order[at] = each.member
	}
	return order
}
