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
	// TTR is the job's. MaxAttempts is its limit (0: none), and RetryIn what its ladder waits after a failure of this
	// attempt (nil: it has no ladder).
	TTR         time.Duration
	MaxAttempts int
	RetryIn     *time.Duration
	// Results are how the jobs ended that it came after. Steps are what earlier attempts kept.
	Results []JobResult
	Steps   map[string][]byte
}

func (q *Queue) reservedOf(key string, rows []any) []Reserved {
	var found []Reserved
	for _, row := range rowsOf(rows) {
		found = append(found, Reserved{
			key, row.id, row.payload, row.token, row.attempt, row.deadline, row.due,
			row.terms.ttr, row.terms.maxAttempts, row.terms.ladder, resultsOf(row.results, q.codec), row.steps,
		})
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
	// Progress is what it said last; Steps are what it has kept, and Awaits is the signal that it waits for.
	Progress string
	Steps    map[string][]byte
	Awaits   string
	// Started is when it was delivered, of a reserved or done job. Finished and Result are those of a done one: nil, where
	// it has none.
	Started, Finished time.Time
	Result            []byte
	Keep              *time.Duration // nil: the queue's settings decide
	Cost              int
	// After are the ids that a blocked job still waits for, or AfterGroup the group.
	After      []string
	AfterGroup string
	OnDead     OnDead
	// Next is the payload of the job that takes its place when its run is over; nil without one.
	Next []byte
	// Rule is that of a recurring job; else nil.
	Rule *Rule
	// Fields are all as the server gave them.
	Fields map[string]any
}

// Rule is how a recurring job comes again: by Every, or by Cron in a Zone.
type Rule struct {
	Every         time.Duration
	Cron, Zone    string
	Until         time.Time // zero: without end
	Times         int       // 0: without end
	Grace, Jitter time.Duration
	// Occurrence is the instant of the current one, Runs how many have ended.
	Occurrence time.Time
	Runs       int
}

func ruleOf(fields map[string]any) *Rule {
	if fields["every"] == nil && fields["cron"] == nil {
		return nil
	}
	return &Rule{
		Every: asDuration(fields["every"]), Cron: asText(fields["cron"]), Zone: asText(fields["tz"]),
		Until: asTime(fields["until"]), Times: int(asInt(fields["times"])), Grace: asDuration(fields["grace"]),
		Jitter: asDuration(fields["jitter"]), Occurrence: asTime(fields["occurrence"]), Runs: int(asInt(fields["runs"])),
	}
}

func jobInfoOf(fields map[string]any) *JobInfo {
	info := &JobInfo{
		ID: asText(fields["id"]), Payload: asBytes(fields["payload"]), State: State(asText(fields["state"])),
		Priority: int(asInt(fields["priority"])), Due: asTime(fields["due"]), Deadline: asTime(fields["deadline"]),
		TTR: asDuration(fields["ttr"]), Attempts: int(asInt(fields["attempts"])),
		MaxAttempts: int(asInt(fields["max-attempts"])), Backoff: asLadder(fields["backoff"]),
		Expires: asTime(fields["expires"]), Token: asText(fields["token"]), Reason: asText(fields["reason"]),
		Failed: asTime(fields["failed"]), Group: asText(fields["group"]), Rule: ruleOf(fields),
		Progress: asText(fields["progress"]), Steps: stepsOf(fields["steps"]), Awaits: asText(fields["awaits"]),
		Started: asTime(fields["started"]), Finished: asTime(fields["finished"]), Result: valueOf(fields["result"]),
		Cost: int(asInt(fields["cost"])), AfterGroup: asText(fields["after-group"]), OnDead: OnDead(strings.ToUpper(asText(fields["on-dead"]))),
		Fields: fields,
	}
	for _, id := range asList(fields["after"]) {
		info.After = append(info.After, asText(id))
	}
	if fields["keep"] != nil {
		keep := asDuration(fields["keep"])
		info.Keep = &keep
	}
	if next := fields["next"]; next != nil {
		info.Next = asBytes(next)
	}
	return info
}

// Peeked is a job as DQ.PEEK shows it.
type Peeked struct {
	ID      string
	Payload []byte
	// At is when it is due, its lease ends, it died, or it was done, by the state that was asked for.
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
