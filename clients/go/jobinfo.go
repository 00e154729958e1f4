// Code generated from docs/libraries.md by `make generated`; DO NOT EDIT.

package dq

import (
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// JobInfo is a job as DQ.GET shows it. An instant that is not there is the zero time, a text "". See also its Kind, Headers
// and Decode.
type JobInfo struct {
	// The job's.
	ID string
	// What was added.
	Payload []byte
	// Where the job is.
	State State
	// Smaller is delivered first.
	Priority int
	// When it is due; nothing of a blocked job without a time of its own.
	Due time.Time
	// When its lease ends; nothing unless reserved.
	Deadline time.Time
	// How long its leases are.
	TTR time.Duration
	// Deliveries so far.
	Attempts int
	// Deliveries allowed; 0: no limit.
	MaxAttempts int
	// The waits after failures.
	Backoff []time.Duration
	// What kind of job it is, for those who look; it changes nothing of how the job is served.
	Label string
	// When its TTL ends it.
	Expires time.Time
	// The current one.
	Token string
	// Why it failed last.
	Reason string
	// When that was.
	Failed time.Time
	// Its last attempts that failed, as many as the queue's `HISTORY` keeps.
	History []FailedAttempt
	// The group that it is in.
	Group string
	// The payload of the job that takes its place when its run is over.
	Next []byte
	// How a recurring job comes again.
	Rule *Rule
	// What its handler reported last.
	Progress string
	// How long it stays once it is done; nothing: as its queue says.
	Keep *time.Duration
	// What a delivery counts for `RATE` and `GROUPRATE`.
	Cost int
	// The signal that it waits for.
	Awaits string
	// What its handler has kept, by name.
	Steps map[string][]byte
	// The latest delivery, of a reserved or done job.
	Started time.Time
	// Who works on it: the name or the address of the connection that it was delivered to, if the server knows it.
	Client string
	// When a done job was acknowledged.
	Finished time.Time
	// What the handler of a done job returned, as the codec encoded it.
	Result []byte
	// The jobs that a blocked job still waits for.
	After []string
	// The group that it waits for.
	AfterGroup string
	// What it does if a job that it is after dies: `wait`, `run` or `die`.
	OnDead OnDead
	// How the jobs ended that it is after, or was.
	Results []JobResult
	// The payload's whole length, where `payload` is cut too.
	PayloadBytes int64
	// Fields are all as the server gave them, also those that this library does not know.
	Fields map[string]any

	codec Codec
}

func jobInfoOf(fields map[string]any, codec Codec) *JobInfo {
	info := &JobInfo{Fields: fields, codec: codec}
	info.ID = resp.Text(fields["id"])
	info.Payload = resp.Bytes(fields["payload"])
	info.State = State(resp.Text(fields["state"]))
	info.Priority = int(resp.Int(fields["priority"]))
	info.Due = resp.Time(fields["due"])
	info.Deadline = resp.Time(fields["deadline"])
	info.TTR = resp.Duration(fields["ttr"])
	info.Attempts = int(resp.Int(fields["attempts"]))
	info.MaxAttempts = int(resp.Int(fields["max-attempts"]))
	info.Backoff = resp.Durations(fields["backoff"])
	info.Label = resp.Text(fields["label"])
	info.Expires = resp.Time(fields["expires"])
	info.Token = resp.Text(fields["token"])
	info.Reason = resp.Text(fields["reason"])
	info.Failed = resp.Time(fields["failed"])
	info.History = historyOf(fields["history"])
	info.Group = resp.Text(fields["group"])
	info.Next = resp.Value(fields["next"])
	info.Rule = ruleOf(fields)
	info.Progress = resp.Text(fields["progress"])
	info.Keep = resp.MaybeDuration(fields["keep"])
	info.Cost = int(resp.Int(fields["cost"]))
	info.Awaits = resp.Text(fields["awaits"])
	info.Steps = stepsOf(fields["steps"])
	info.Started = resp.Time(fields["started"])
	info.Client = resp.Text(fields["client"])
	info.Finished = resp.Time(fields["finished"])
	info.Result = resp.Value(fields["result"])
	info.After = resp.Texts(fields["after"])
	info.AfterGroup = resp.Text(fields["after-group"])
	info.OnDead = onDeadOf(fields["on-dead"])
	info.Results = resultsOf(endingsOf(fields["results"]), codec)
	info.PayloadBytes = resp.Int(fields["payload-bytes"])
	return info
}
