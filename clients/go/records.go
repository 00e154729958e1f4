package dq

import (
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
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
	// TTR is the length of the job's leases. MaxAttempts is its limit (0: none). RetryIn is the wait of its backoff
	// after a failure of this attempt (nil: no backoff).
	TTR         time.Duration
	MaxAttempts int
	RetryIn     *time.Duration
	// Results are how the jobs ended that this job came after. Steps are what earlier attempts kept, by name.
	Results []JobResult
	Steps   map[string][]byte
}

// FailedAttempt is an attempt of a job that failed.
type FailedAttempt struct {
	Attempts       int // deliveries by then, with this one
	Started, Ended time.Time
	How            string // "nacked", "fatal" or "timeout"
	Reason         string // "" without one
}

func historyOf(value any) []FailedAttempt {
	rows := resp.List(value)
	history := make([]FailedAttempt, len(rows))
	for at, row := range rows {
		if r := resp.List(row); len(r) == 5 {
			history[at] = FailedAttempt{
				Attempts: int(resp.Int(r[0])), Started: resp.Time(r[1]), Ended: resp.Time(r[2]), How: resp.Text(r[3]), Reason: resp.Text(r[4]),
			}
		}
	}
	return history
}

// Rule is how a job recurs: by Every, or by Cron in a TZ.
type Rule struct {
	Every         time.Duration
	Cron, TZ      string
	Until         time.Time // zero: without end
	Times         int       // 0: without end
	Grace, Jitter time.Duration
	// Occurrence is the instant of the current occurrence; Runs is how many have ended.
	Occurrence time.Time
	Runs       int
}

func ruleOf(fields map[string]any) *Rule {
	if fields["every"] == nil && fields["cron"] == nil {
		return nil
	}
	return &Rule{
		Every: resp.Duration(fields["every"]), Cron: resp.Text(fields["cron"]), TZ: resp.Text(fields["tz"]),
		Until: resp.Time(fields["until"]), Times: int(resp.Int(fields["times"])), Grace: resp.Duration(fields["grace"]),
		Jitter: resp.Duration(fields["jitter"]), Occurrence: resp.Time(fields["occurrence"]), Runs: int(resp.Int(fields["runs"])),
	}
}

// Peeked is a job as DQ.PEEK shows it.
type Peeked struct {
	ID      string
	Payload []byte
	// At depends on the state that was asked for: when the job is due, when its lease expires, when it died or was
	// done.
	At       time.Time
	Attempts int
	Priority int
	// PayloadBytes is the payload's whole length, where Payload is cut too.
	PayloadBytes int64
}

func peekedOf(rows []any) []Peeked {
	var found []Peeked
	for _, each := range rows {
		row := resp.List(each)
		if len(row) < 5 {
			continue
		}
		job := Peeked{
			resp.Text(row[0]), resp.Bytes(row[1]), resp.Time(row[2]), int(resp.Int(row[3])), int(resp.Int(row[4])), 0,
		}
		job.PayloadBytes = int64(len(job.Payload))
		if len(row) > 5 {
			job.PayloadBytes = resp.Int(row[5])
		}
		found = append(found, job)
	}
	return found
}

// Group is a group that holds jobs.
type Group struct {
	Name              string
	Waiting, Reserved int
}

func onDeadOf(value any) OnDead { return OnDead(strings.ToUpper(resp.Text(value))) }
