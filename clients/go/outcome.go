package dq

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

const (
	unknownKindDelay    = time.Minute // for each attempt
	longestUnknown      = time.Hour
	mostUnknownAttempts = 14

	usedUpReason = "attempts used up; its workers were lost"

	ackTogether  = 100
	cuttingBytes = 1 << 20 // a longer command may be why the server cut the connection
	mostCuts     = 2
)

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
		if limit := d.limit(); 0 < limit && limit <= d.attempt {
			o.mode, o.wait = "FATAL", unsaid
		} else if o.wait == unsaid && d.terms.ladder == nil && h != nil && len(h.Backoff) > 0 {
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

// unknown fails a job whose kind has no handler here: it comes to another worker later, each time much later.
func unknown(d *delivery) *outcome {
	reason := `unknown kind "` + d.shownKind() + `"`
	if d.attempt >= mostUnknownAttempts {
		return dead(d, reason)
	}
	wait := min(time.Duration(d.attempt)*unknownKindDelay, longestUnknown)
	counts := [][]string{d.step(unknownStep, strconv.Itoa(d.unknown+1))}
	return &outcome{of: d, mode: "FAIL", wait: wait, reason: reason, ahead: counts, isOwnWait: true}
}

func dead(d *delivery, reason string) *outcome {
	return &outcome{of: d, mode: "FATAL", wait: unsaid, reason: reason}
}

// pack appends the commands of outcomes to a write.
func pack(out []byte, told []*outcome) []byte {
	for len(told) > 0 {
		some := alike(told)
		if told = told[len(some):]; len(some) == 1 {
			out = some[0].pack(out)
			continue
		}
		words := append(make([]string, 0, 5+2*len(some)), "DQ.ACK", some[0].of.queue, "WITHTOKENS", "IDS", strconv.Itoa(len(some)))
		for _, each := range some {
			words = append(words, each.of.id, each.of.token)
		}
		out = resp.Append(out, words)
	}
	return out
}

// alike are the first outcomes that share a command, whose reply has an answer for each.
func alike(told []*outcome) []*outcome {
	count := 1
	for count < min(len(told), ackTogether) && told[count].of.queue == told[0].of.queue && told[0].isPlain() && told[count].isPlain() {
		count++
	}
	return told[:count]
}

func (o *outcome) isPlain() bool {
	return o.mode == "" && o.result == nil && o.suspension == nil && len(o.ahead) == 0
}

// pack appends the outcome's commands to a write.
func (o *outcome) pack(out []byte) []byte {
	if o.answers() == 1 {
		return resp.Append(out, o.command())
	}
	for _, each := range o.commands() {
		out = resp.Append(out, each)
	}
	return out
}

// answers returns how many replies will come. The last one counts.
func (o *outcome) answers() int { return len(o.ahead) + 1 }

func (o *outcome) commands() [][]string { return append(slices.Clip(o.ahead), o.command()) }

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
		return []string{"DQ.ACK", d.queue, "RESULTS", "IDS", "1", d.id, d.token, string(o.result)}
	}
	if o.mode == "" {
		return []string{"DQ.ACK", d.queue, "WITHTOKENS", "IDS", "1", d.id, d.token}
	}
	words := append(make([]string, 0, 10), "DQ.NACK", d.queue, d.id, "TOKEN", d.token, o.mode)
	if o.wait != unsaid {
		words = append(words, "DELAY", resp.MsText(o.wait))
	}
	if o.reason != "" {
		words = append(words, "REASON", o.reason)
	}
	return words
}

// heard returns what a reply means.
func (o *outcome) heard(reply any) (isLost bool, refused resp.Error) {
	if said, isError := reply.(resp.Error); isError {
		return false, said
	}
	if all := resp.List(reply); len(all) == 1 { // of an ACK
		reply = all[0]
	}
	// If the command was sent before, a negative reply only says that the first sending was executed.
	return (reply == nil || reply == int64(0)) && !o.wasSent, ""
}

// mayBeDead says whether the reply means that the job is dead, or may be: the reply to an earlier sending was lost.
func (o *outcome) mayBeDead(reply any) bool {
	return o.mode != "" && (resp.Text(reply) == "dead" || reply == nil && o.wasSent)
}

// refusedBy says whether the server refuses the outcome as it is, so that less must be asked for.
func (o *outcome) refusedBy(said resp.Error) bool {
	switch {
	case trouble.IsForbidden(said):
		return o.suspension != nil && len(o.suspension.before) > 0 // EVAL: only steps need it
	case o.mode == "" && o.result != nil && strings.HasPrefix(string(said), "OOM "):
		return true
	}
	return said.IsForGood() && fatal(said) == nil
}

// size returns how many bytes its commands have.
func (o *outcome) size() (bytes int) {
	for _, command := range o.commands() {
		for _, word := range command {
			bytes += len(word)
		}
	}
	return bytes
}

func (o *outcome) cut(size int) {
	o.cuts = 0
	if o.mode == "" && o.result != nil {
		o.mode, o.wait, o.reason = dead(o.of, unstorable(len(o.result))).parts()
		o.result = nil
		return
	}
	o.refused(resp.Error(fmt.Sprintf("a command of %d bytes cut the connection %d times", size, mostCuts)))
}

func (o *outcome) parts() (mode string, wait time.Duration, reason string) {
	return o.mode, o.wait, o.reason
}

// refused removes from the outcome what the server may have refused. It says whether anything is left to try.
func (o *outcome) refused(said resp.Error) bool {
	switch {
	case o.suspension != nil:
		failure := verdict{way: failed, wait: unsaid, reason: guard.Clip(o.suspension.wayOut(string(said)), reasonBytes)}
		o.suspension = nil
		o.mode, o.wait, o.reason = settled(o.of, failure).parts()
	case o.result != nil:
		o.result = nil
	case o.mode == "":
		return false
	case o.mode == "SILENT" && o.wait != unsaid && !o.isOwnWait:
		failure := verdict{way: failed, wait: unsaid, reason: cmp.Or(o.reason, "snoozed with a delay that the server refuses")}
		o.mode, o.wait, o.reason = settled(o.of, failure).parts()
	case o.wait != unsaid && !o.isOwnWait:
		asked := o.wait
		o.mode, o.wait, o.reason = settled(o.of, verdict{way: failed, wait: unsaid, reason: o.reason}).parts()
		o.isOwnWait = true
		if o.wait == asked { // it was the handler's backoff
			o.wait = unsaid
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

func progressCommand(d *delivery, text string) []string {
	return []string{"DQ.TOUCH", d.queue, d.id, "TOKEN", d.token, "PROGRESS", text}
}
