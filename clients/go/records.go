package dq

import (
	"strings"
	"time"
)

// Reserved is a job that was popped by hand, without a worker.
type Reserved struct {
	Queue   string
	ID      string
	Payload []byte
	// Token is what Ack, Nack and Touch need; "" with NoAck.
	Token    string
	Attempt  int
	Deadline time.Time // zero with NoAck
	Due      time.Time
}

func reservedOf(key string, rows []any) []Reserved {
	var found []Reserved
	for _, each := range rows {
		if row := asList(each); len(row) == 6 {
			found = append(found, Reserved{
				key, asText(row[0]), asBytes(row[1]), asText(row[2]), int(asInt(row[3])), asTime(row[4]), asTime(row[5]),
			})
		}
	}
	return found
}

// JobInfo is a job as DQ.GET shows it.
type JobInfo struct {
	ID          string
	Payload     []byte
	State       State
	Priority    int
	Due         time.Time
	Deadline    time.Time // of its lease; else zero
	TTR         time.Duration
	Attempts    int
	MaxAttempts int // 0: no limit
	Backoff     []time.Duration
	Expires     time.Time // zero: never
	Token       string    // the current one, or ""
	Reason      string    // of the last failure
	Failed      time.Time // when that was
	Group       string
	// Fields are all as the server gave them: those of recurring jobs are only here.
	Fields map[string]any
}

func jobInfoOf(fields map[string]any) *JobInfo {
	if fields == nil {
		return nil
	}
	return &JobInfo{
		ID: asText(fields["id"]), Payload: asBytes(fields["payload"]), State: State(asText(fields["state"])),
		Priority: int(asInt(fields["priority"])), Due: asTime(fields["due"]), Deadline: asTime(fields["deadline"]),
		TTR: asDuration(fields["ttr"]), Attempts: int(asInt(fields["attempts"])),
		MaxAttempts: int(asInt(fields["max-attempts"])), Backoff: asLadder(fields["backoff"]),
		Expires: asTime(fields["expires"]), Token: asText(fields["token"]), Reason: asText(fields["reason"]),
		Failed: asTime(fields["failed"]), Group: asText(fields["group"]), Fields: fields,
	}
}

// Peeked is a job as DQ.PEEK shows it.
type Peeked struct {
	ID      string
	Payload []byte
	// At is when it is due, its lease ends, or it died, by the state that was asked for.
	At       time.Time
	Attempts int
	Priority int
}

func peekedOf(rows []any) []Peeked {
	var found []Peeked
	for _, each := range rows {
		if row := asList(each); len(row) == 5 {
			found = append(found, Peeked{
				asText(row[0]), asBytes(row[1]), asTime(row[2]), int(asInt(row[3])), int(asInt(row[4])),
			})
		}
	}
	return found
}

// Group is one that holds jobs.
type Group struct {
	Name              string
	Waiting, Reserved int
}

// Stats are a queue's figures; of a sharded queue, those of its shards added up.
type Stats struct {
	Delayed, Ready, Reserved, Dead int
	NextDue                        time.Time     // zero: nothing is to come
	OldestReady                    time.Duration // age
	WaitingClients                 int
	// Totals are added, delivered, acked, nacked, timed-out, died, deleted, expired and missed.
	Totals map[string]int64
	// Lateness is delivery minus due.
	LatenessCount             int64
	LatenessMean, LatenessMax time.Duration
	LatenessBuckets           []LatenessBucket
}

// LatenessBucket is how many deliveries were at most so late; a negative bound is none.
type LatenessBucket struct {
	UpTo  time.Duration
	Count int64
}

var notTotals = map[string]bool{
	"delayed": true, "ready": true, "reserved": true, "dead": true, "next-due": true, "oldest-ready-ms": true,
	"waiting-clients": true, "paused": true, "bytes": true, "recurring": true, "groups": true,
}

func addUp(found []map[string]any) *Stats {
	if len(found) == 0 {
		return nil
	}
	total := func(name string) (sum int64) {
		for _, fields := range found {
			sum += asInt(fields[name])
		}
		return sum
	}
	s := &Stats{
		Delayed: int(total("delayed")), Ready: int(total("ready")), Reserved: int(total("reserved")),
		Dead: int(total("dead")), WaitingClients: int(total("waiting-clients")), Totals: map[string]int64{},
		LatenessCount: total("lateness-count"),
	}
	for name := range found[0] {
		if !notTotals[name] && !strings.HasPrefix(name, "lateness-") {
			s.Totals[name] = total(name)
		}
	}
	if s.LatenessCount > 0 {
		s.LatenessMean = time.Duration(total("lateness-sum")/s.LatenessCount) * time.Microsecond
	}
	for _, fields := range found {
		s.addExtremes(fields)
	}
	return s
}

func (s *Stats) addExtremes(fields map[string]any) {
	if due := asTime(fields["next-due"]); !due.IsZero() && (s.NextDue.IsZero() || due.Before(s.NextDue)) {
		s.NextDue = due
	}
	s.OldestReady = max(s.OldestReady, asDuration(fields["oldest-ready-ms"]))
	s.LatenessMax = max(s.LatenessMax, time.Duration(asInt(fields["lateness-max"]))*time.Microsecond)
	for at, each := range asList(fields["lateness-buckets"]) {
		pair := asList(each)
		if len(pair) != 2 {
			continue
		}
		if at == len(s.LatenessBuckets) {
			bound := time.Duration(-1)
			if pair[0] != nil {
				bound = time.Duration(asInt(pair[0])) * time.Microsecond
			}
			s.LatenessBuckets = append(s.LatenessBuckets, LatenessBucket{UpTo: bound})
		}
		s.LatenessBuckets[at].Count += asInt(pair[1])
	}
}

func asTime(value any) time.Time {
	if number, ok := value.(int64); ok {
		return time.UnixMilli(number)
	}
	return time.Time{}
}

func asDuration(value any) time.Duration { return time.Duration(asInt(value)) * time.Millisecond }

func asLadder(value any) []time.Duration {
	steps := []time.Duration{}
	for _, each := range asList(value) {
		steps = append(steps, asDuration(each))
	}
	return steps
}
