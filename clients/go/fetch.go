package dq

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"
)

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
	lease      string
}

// command waits for up to count jobs. Strict order is BPOP's own; with weights each queue comes first in its share of
// the fetches.
func (f *fetches) command(count int, wait time.Duration) []string {
	words := make([]string, 0, len(f.members)+7)
	words = append(words, "DQ.BPOP")
	for _, each := range f.order() {
		words = append(words, each.key)
	}
	seconds := strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)
	return append(words, seconds, "COUNT", strconv.Itoa(count), "TTR", f.lease, "WITHDUE")
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

// jobsOf reads the answer of a fetch.
func (l *link) jobsOf(reply any) []*Job {
	pair := asList(reply)
	if len(pair) != 2 {
		return nil
	}
	key := asText(pair[0])
	rows := asList(pair[1])
	jobs := make([]*Job, 0, len(rows))
	for _, each := range rows {
		row := asList(each)
		if len(row) != 6 {
			continue
		}
		jobs = append(jobs, &Job{
			ID: asText(row[0]), Queue: key, Payload: asBytes(row[1]), Token: asText(row[2]), Attempt: int(asInt(row[3])),
			Deadline: time.UnixMilli(asInt(row[4])), Due: time.UnixMilli(asInt(row[5])),
			codec: l.codecs[key], link: l,
		})
	}
	return jobs
}
