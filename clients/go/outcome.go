package dq

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

const unknownKindDelay = 5 * time.Second

// outcome is what the server is to be told of a delivery that ended.
type outcome struct {
	of         *delivery
	mode       string // of a NACK; "": an ACK
	wait       time.Duration
	reason     string
	result     []byte      // of an ACK; nil: none
	progress   string      // to be sent before the end; "": none
	suspension *suspension // instead of all of these
	isOwnWait  bool        // the wait is the library's, not the handler's
	wasSent    bool        // sent, and the connection was lost before the reply
	isRefused  bool
}

// suspension gives a job back until something happens: the commands to execute before, and then the options of the
// NACK.
type suspension struct {
	before [][]string
	rest   []string
}

// settled returns the outcome of an attempt.
func settled(d *delivery, v verdict) *outcome {
	o := &outcome{of: d, wait: v.wait, reason: v.reason}
	h := d.handler
	switch v.way {
	case succeeded:
	case suspended:
		o.suspension = d.waits()
	case snoozed, givenBack:
		o.mode = "SILENT"
	case gaveUp:
		o.mode = "FATAL"
	case failed:
		o.mode = "FAIL"
		if d.terms.maxAttempts == 0 && h != nil && 0 < h.Attempts && h.Attempts <= d.attempt {
			o.mode, o.wait = "FATAL", unsaid
		} else if o.wait == unsaid && d.terms.ladder == nil && h != nil {
			o.wait = max(h.delay(d.attempt), shortestDelay)
		}
	}
	return o
}

// returned gives the job back, as if it had not been delivered.
func returned(d *delivery) *outcome { return &outcome{of: d, mode: "SILENT", wait: unsaid} }

// returnedFor gives the job back, to be delivered after a wait.
func returnedFor(d *delivery, wait time.Duration) *outcome {
	return &outcome{of: d, mode: "SILENT", wait: wait, isOwnWait: true}
}

// unknown gives back a job whose kind has no handler here, for a worker that has one.
func unknown(d *delivery) *outcome {
	return returnedFor(d, time.Duration(float64(unknownKindDelay)*(1+rand.Float64())))
}

// pack appends the outcome's commands to a write.
func (o *outcome) pack(out []byte) []byte {
	if o.answers() == 1 {
		return appendCommand(out, o.command())
	}
	for _, each := range o.commands() {
		out = appendCommand(out, each)
	}
	return out
}

// answers returns how many replies will come. The last one counts.
func (o *outcome) answers() int {
	if o.progress != "" {
		return 2
	}
	return 1
}

func (o *outcome) commands() [][]string {
	if o.progress == "" {
		return [][]string{o.command()}
	}
	return [][]string{progressCommand(o.of, o.progress), o.command()}
}

func (o *outcome) command() []string {
	d := o.of
	if o.suspension != nil {
		nack := append([]string{"DQ.NACK", d.queue, d.id, "TOKEN", d.token, "SILENT"}, o.suspension.rest...)
		if len(o.suspension.before) == 0 {
			return nack
		}
		return allOrRefused(d.queue, append(slices.Clone(o.suspension.before), nack))
	}
	if o.mode == "" && o.result != nil {
		return []string{"DQ.ACK", d.queue, "RESULTS", d.id, d.token, string(o.result)}
	}
	if o.mode == "" {
		return []string{"DQ.ACK", d.queue, "WITHTOKENS", d.id, d.token}
	}
	words := append(make([]string, 0, 10), "DQ.NACK", d.queue, d.id, "TOKEN", d.token, o.mode)
	if o.wait != unsaid {
		words = append(words, "DELAY", ms(o.wait))
	}
	if o.reason != "" {
		words = append(words, "REASON", o.reason)
	}
	return words
}

// heard returns what a reply means.
func (o *outcome) heard(reply any) (isLost bool, refused serverError) {
	if said, isError := reply.(serverError); isError {
		return false, said
	}
	// If the command was sent before, a negative reply only says that the first sending was executed.
	return (reply == nil || reply == int64(0)) && !o.wasSent, ""
}

func (o *outcome) parts() (mode string, wait time.Duration, reason string) {
	return o.mode, o.wait, o.reason
}

// refused removes from the outcome what the server may have refused. It says whether anything is left to try.
func (o *outcome) refused(said serverError) bool {
	switch {
	case o.suspension != nil:
		failure := verdict{way: failed, wait: unsaid, reason: clean(string(said), reasonBytes)}
		o.suspension = nil
		o.mode, o.wait, o.reason = settled(o.of, failure).parts()
	case o.result != nil:
		o.result = nil
	case o.mode == "":
		return false
	case o.mode == "SILENT" && o.wait != unsaid && !o.isOwnWait:
		failure := verdict{way: failed, wait: unsaid, reason: or(o.reason, "snoozed with a delay that the server refuses")}
		o.mode, o.wait, o.reason = settled(o.of, failure).parts()
	case o.wait != unsaid && !o.isOwnWait:
		asked := o.wait
		o.mode, o.wait, o.reason = settled(o.of, verdict{way: failed, wait: unsaid, reason: o.reason}).parts()
		o.isOwnWait = true
		isNobodys := o.wait == unsaid && o.of.terms.ladder == nil && o.mode == "FAIL"
		if o.wait == asked || isNobodys { // the handler's backoff was refused, or there is none
			o.wait = exponential(o.of.attempt, firstDelay, longestDelay)
		}
	case o.wait != unsaid:
		o.wait = unsaid
	case o.reason != "":
		o.reason = ""
	default:
		return false
	}
	return true
}

// ms formats whole milliseconds, rounded up: no wait is shorter than asked for.
func ms(d time.Duration) string { return strconv.FormatInt(toMs(d), 10) }

func toMs(d time.Duration) int64 {
	whole := d.Milliseconds()
	if d > time.Duration(whole)*time.Millisecond {
		whole++
	}
	return whole
}

// --- Heartbeats, and what is given back in the end

func byKey(all []*delivery) map[string][]*delivery {
	groups := map[string][]*delivery{}
	for _, d := range all {
		groups[d.queue] = append(groups[d.queue], d)
	}
	return groups
}

func forAll(command, key string, all []*delivery, options ...string) []string {
	words := make([]string, 0, 4+2*len(all)+len(options))
	words = append(words, command, key, "IDS", strconv.Itoa(len(all)))
	for _, d := range all {
		words = append(words, d.id, d.token)
	}
	return append(words, options...)
}
