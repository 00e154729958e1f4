package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

// args are the options of a method, by their names in the command reference.
type args struct {
	ID         string
	IDs        []string
	Token      string
	Tokens     map[string]string
	Data       json.RawMessage
	Payload    json.RawMessage
	Kind       string
	Headers    map[string]string
	Delay      *int64
	At         int64
	Priority   *int
	TTR        int64
	Group      string
	IfExists   string `json:"if_exists"`
	Mode       string
	Reason     string
	Count      int
	Timeout    int64
	NoAck      bool
	State      string
	Cursor     string
	Match      string
	Interval   int64
	Expression string
	TZ         string
	First      int64
	Until      int64
	Since      int64
	Times      int
	Grace      int64
	Jitter     int64
	Buckets    int
	Prefix     *int
	Duration   int64
	Repeat     int
	MaxLen     *int
	History    *int
	Label      string
	Awaits     string
	Recurring  bool
	// BackoffDefault is of configure: the server's holds.
	BackoffDefault bool `json:"backoff_default"`
	Rate           []int64
	Weight, Max    *int
	Unreserved     bool
	After          []string
	OnDead         string `json:"on_dead"`
	AfterGroup     string `json:"after_group"`
	Name           string
	Value          any
	Jobs           []json.RawMessage
	Then           json.RawMessage
	Program        struct{ Base64 []byte }
	Rules          map[string]json.RawMessage
	Every          int64
	Cron           string
	Prune          bool
	AllowEmpty     bool `json:"allow_empty"`
	DryRun         bool `json:"dry_run"`

	said saidArgs
}

func read(raw json.RawMessage) (a args, err error) {
	if raw != nil {
		err = errors.Join(json.Unmarshal(raw, &a), json.Unmarshal(raw, &a.said))
	}
	return a, err
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (a args) data() any {
	if a.Payload == nil {
		return a.Data
	}
	var coded struct{ Base64 string }
	if json.Unmarshal(a.Payload, &coded) == nil {
		raw, _ := base64.StdEncoding.DecodeString(coded.Base64)
		return raw
	}
	var text string
	_ = json.Unmarshal(a.Payload, &text)
	return []byte(text)
}

func (a args) job() dq.JobOptions {
	conditions := map[string]dq.IfExists{"replace": dq.Replace, "only-replace": dq.OnlyReplace, "next": dq.RunAgain}
	options := dq.JobOptions{
		ID: a.ID, IfExists: conditions[a.IfExists], At: instant(a.At), Kind: a.Kind, Headers: a.Headers, After: a.After,
		AfterGroup: a.AfterGroup, OnDead: dq.OnDead(strings.ToUpper(a.OnDead)),
	}
	if a.Delay != nil {
		options.Delay = duration(*a.Delay)
	}
	a.said.say(&options)
	return options
}

func (a args) rule() *dq.RuleOptions {
	return &dq.RuleOptions{
		JobOptions: a.job(), First: instant(a.First), TZ: a.TZ, Until: instant(a.Until), Times: a.Times,
		Grace: duration(a.Grace), Jitter: duration(a.Jitter),
	}
}

func (a args) delay() *time.Duration {
	if a.Delay == nil {
		return nil
	}
	d := duration(*a.Delay)
	return &d
}

func (a args) nack() *dq.NackOptions {
	return &dq.NackOptions{
		Mode: dq.NackMode(strings.ToUpper(a.Mode)), Delay: a.delay(), Priority: a.Priority, Reason: a.Reason,
	}
}

func (a args) many() []dq.NewJob {
	jobs := make([]dq.NewJob, a.Repeat)
	for n := range jobs {
		jobs[n] = dq.NewJob{Data: a.data(), JobOptions: a.job()}
		jobs[n].ID = fmt.Sprintf("%s:%d", a.ID, n)
	}
	return jobs
}

func orNull(text string, err error) (any, error) {
	if text == "" {
		return nil, err
	}
	return text, err
}

func msOf(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UnixMilli()
}
