package dq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// What decides, case by case: without a server, a clock or goroutines.

func TestHowAResultIsSent(t *testing.T) {
	d := aJob(Handler{}, 1, "")
	d.job.Succeed(map[string]int{"n": 1})
	v, result, err := d.verdict(nil)
	ended := settled(d, v)
	ended.result = result
	expect(t, ended.command(), []string{"DQ.ACK", "q", "RESULTS", "IDS", "1", "id", token, `{"n":1}`})
	expect(t, err, nil)
	expect(t, ended.refused("ERR no"), true)
	expect(t, ended.command(), []string{"DQ.ACK", "q", "WITHTOKENS", "IDS", "1", "id", token})
	expect(t, ended.refused("ERR no"), false)
}

func TestWhatBecomesOfAResult(t *testing.T) {
	no := errors.New("no")
	batch := Handler{DoBatch: func(context.Context, []*Job) error { return nil }, Batch: 2}
	succeed := func(j *Job) { j.Succeed(1) }
	for name, each := range map[string]struct {
		handler Handler
		does    func(*Job)
		returns error
		way     way
		result  string
	}{
		"nothing":                    {Handler{}, func(*Job) {}, nil, succeeded, ""},
		"a result":                   {Handler{}, succeed, nil, succeeded, "1"},
		"a result and an error":      {Handler{}, succeed, no, failed, ""},
		"a nil":                      {Handler{}, func(j *Job) { j.Succeed(nil) }, nil, succeeded, ""},
		"not encodable":              {Handler{}, func(j *Job) { j.Succeed(func() {}) }, nil, gaveUp, ""},
		"a codec that panics":        {Handler{}, func(j *Job) { j.Succeed(bomb{}) }, nil, gaveUp, ""},
		"in a batch that fails":      {batch, succeed, no, succeeded, "1"},
		"failed, then not":           {batch, func(j *Job) { j.Fail(no); j.Succeed(2) }, nil, succeeded, "2"},
		"not failed, then failed":    {batch, func(j *Job) { j.Succeed(2); j.Fail(no) }, nil, failed, ""},
		"a batch that fails as such": {batch, func(*Job) {}, no, failed, ""},
	} {
		d := aJob(each.handler, 1, "")
		each.does(d.job)
		v, result, _ := d.verdict(each.returns)
		if v.way != each.way || string(result) != each.result || (result == nil) != (each.result == "") {
			t.Errorf("%s: %+v, %q", name, v, result)
		}
		if strings.Contains(name, "cod") && !strings.HasPrefix(v.reason, "result cannot be encoded: ") {
			t.Errorf("%s: %s", name, v.reason)
		}
	}
}

type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("boom") }

type flaky struct{ error }

func TestWhichErrorsAreTriedAgain(t *testing.T) {
	plain, wrapped := errors.New("no"), fmt.Errorf("wrapped: %w", flaky{context.Canceled})
	isFlaky := ErrorAs[flaky]()
	for name, each := range map[string]struct {
		handler Handler
		err     error
		mode    string
	}{
		"without rules":                   {Handler{}, plain, "FAIL"},
		"retried":                         {Handler{RetryOn: isFlaky}, wrapped, "FAIL"},
		"not retried":                     {Handler{RetryOn: isFlaky}, plain, "FATAL"},
		"final":                           {Handler{GiveUpOn: isFlaky}, wrapped, "FATAL"},
		"not final":                       {Handler{GiveUpOn: isFlaky}, plain, "FAIL"},
		"both":                            {Handler{RetryOn: isFlaky, GiveUpOn: isFlaky}, wrapped, "FATAL"},
		"by value":                        {Handler{RetryOn: ErrorIs(plain, errors.ErrUnsupported)}, plain, "FAIL"},
		"by another value":                {Handler{RetryOn: ErrorIs(errors.ErrUnsupported)}, plain, "FATAL"},
		"the handler says so":             {Handler{RetryOn: isFlaky}, RetryIn(time.Minute, plain), "FAIL"},
		"the handler gives up":            {Handler{RetryOn: isFlaky}, GiveUp(wrapped), "FATAL"},
		"the handler snoozes":             {Handler{GiveUpOn: ErrorIs(plain)}, Snooze(time.Minute), "SILENT"},
		"a panic":                         {Handler{RetryOn: isFlaky}, &PanicError{Value: 1}, "FATAL"},
		"a rule that panics":              {Handler{RetryOn: func(error) bool { panic("boom") }}, plain, "FAIL"},
		"a rule and an error that panics": {Handler{GiveUpOn: isFlaky}, panicky{}, "FAIL"},
	} {
		if said := after(aJob(each.handler, 1, ""), each.err); said[5] != each.mode {
			t.Errorf("%s: %v", name, said)
		}
	}
}

type panicky struct{}

func (panicky) Error() string { return "" }
func (panicky) As(any) bool   { panic("boom") }

func TestTheReasonOfATimeout(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		30 * time.Second: "timeout after 30 s", 1500 * time.Millisecond: "timeout after 1.5 s", time.Hour: "timeout after 3600 s",
	} {
		d := aJob(Handler{Backoff: []time.Duration{time.Minute}, RetryOn: ErrorIs()}, 1, "")
		expect(t, settled(d, overdue(limit)).command()[5:], []string{"FAIL", "DELAY", "60000", "REASON", want})
	}
}

// --- Suspensions

func TestWhatASleepIsToTheServer(t *testing.T) {
	d := aJob(Handler{}, 1, "")
	expect(t, errors.Is(d.job.Sleep("nap", time.Minute), ErrSuspended), true)
	v, _, err := d.verdict(errors.New("it was swallowed"))
	ended := settled(d, v)
	ended.ahead = [][]string{progressCommand(d, "0.5 half")}
	expect(t, err, ErrSuspended)
	expect(t, ended.commands(), [][]string{
		{"DQ.TOUCH", "q", "id", "TOKEN", token, "PROGRESS", "0.5 half"},
		{
			"EVAL", allScript, "1", "q",
			"6", "DQ.STEP", "q", "id", token, "nap", "",
			"8", "DQ.NACK", "q", "id", "TOKEN", token, "SILENT", "DELAY", "60000",
		},
	})
	expect(t, ended.answers(), len(ended.commands()))
	expect(t, d.job.Sleep("more", time.Minute), ErrSuspended)
	_, err = Step(t.Context(), d.job, "step", func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
	expect(t, err, ErrSuspended)
}

func TestWhatTheAnswerToASuspensionMeans(t *testing.T) {
	const full = resp.Error("MAXBYTES queue is full")
	for _, each := range []struct {
		reply     any
		wasSent   bool
		isLost    bool
		isRefused bool
	}{
		{[]byte("delayed"), false, false, false},
		{nil, false, true, false},
		{nil, true, false, false},
		{full, false, false, true},
	} {
		d := aJob(Handler{}, 1, "")
		_ = d.job.Sleep("nap", time.Minute)
		v, _, _ := d.verdict(nil)
		o := settled(d, v)
		o.wasSent = each.wasSent
		isLost, said := o.heard(each.reply)
		if isLost != each.isLost || (said != "") != each.isRefused {
			t.Errorf("%v: %v, %q", each.reply, isLost, said)
		}
		if each.isRefused { // the job fails, with what the server said
			expect(t, o.refused(said), true)
			expect(t, o.command()[5:], []string{"FAIL", "REASON", string(said)})
		}
	}
}

func TestHowAWaitForASignalGoesOn(t *testing.T) {
	for _, each := range []struct {
		marker            string
		isSet, hasTimeout bool
		want              waitState
	}{
		{"", false, false, waitsOn}, {"", false, true, waitsBriefly}, {"", true, false, hears}, {"", true, true, hears},
		{waiting, false, true, gaveItUp}, {waiting, true, true, hears}, {waiting, false, false, waitsOn},
		{timedOut, false, true, gaveItUp}, {timedOut, true, true, gaveItUp}, {timedOut, true, false, gaveItUp},
	} {
		if got := waited(each.marker, each.isSet, each.hasTimeout); got != each.want {
			t.Errorf("%+v: %v", each, got)
		}
	}
}

func TestNamesOfSteps(t *testing.T) {
	for name, isGood := range map[string]bool{
		"a": true, "": false, "dq:a": false, "dq": true, strings.Repeat("x", 256): true, strings.Repeat("x", 257): false,
	} {
		expect(t, checkName(name, "") == nil, isGood)
	}
	expect(t, checkName(strings.Repeat("x", 248), afterPrefix) == nil, false)
	var s steps
	expect(t, []bool{s.use("a") == nil, s.use("b") == nil, s.use("a") == nil}, []bool{true, true, false})
}

func TestEndingsAreKeptAsAStep(t *testing.T) {
	all := []ending{{"a", OutcomeDone, []byte("\x00ü")}, {"b", OutcomeDead, []byte("no")}, {"c", OutcomeDone, nil}, {"d", "", nil}, {"e", OutcomeDone, []byte{}}}
	packed := packEndings(all)
	expect(t, string(packed), `[["a","done","AMO8"],["b","dead","bm8="],["c","done",null],["d",null,null],["e","done",""]]`)
	found, err := unpackEndings(packed)
	expect(t, err, nil)
	expect(t, found, all)
	for _, bad := range []string{"", "{}", `[["a","done","?"]]`, `[[1]]`} {
		if _, err := unpackEndings([]byte(bad)); err == nil {
			t.Error(bad)
		}
	}
	expect(t, []string{resultsOf(all, JSON)[1].Reason, string(resultsOf(all, JSON)[1].Bytes())}, []string{"no", ""})
}

// --- Whom the listener hears

func TestWhenAnEarAsks(t *testing.T) {
	now := time.UnixMilli(1000)
	aged := func(age time.Duration) *delivery { return &delivery{since: now.Add(-age)} }
	old, older, young := aged(heardFrom), aged(time.Hour), aged(5*time.Millisecond)
	covers := func(all ...*delivery) map[*delivery]struct{} {
		found := map[*delivery]struct{}{}
		for _, d := range all {
			found[d] = struct{}{}
		}
		return found
	}
	soon := now.Add(heardFrom)
	for name, each := range map[string]struct {
		state    listening
		held     []*delivery
		mustWake bool
		behind   bool
		next     time.Time
	}{
		"nothing":           {listening{}, nil, false, false, time.Time{}},
		"a short job":       {listening{}, []*delivery{young}, false, false, young.since.Add(heardFrom)},
		"one that is not":   {listening{}, []*delivery{old}, true, false, soon},
		"both":              {listening{}, []*delivery{young, old}, true, false, soon},
		"it is covered":     {listening{isAwake: true, covered: covers(old)}, []*delivery{old}, false, false, time.Time{}},
		"one is not":        {listening{isAwake: true, covered: covers(old)}, []*delivery{old, older}, false, true, soon},
		"awake, not asking": {listening{isAwake: true}, []*delivery{old}, false, false, time.Time{}},
	} {
		mustWake, behind, next := each.state.look(each.held, now)
		if mustWake != each.mustWake || behind != each.behind || !next.Equal(each.next) {
			t.Errorf("%s: %v %v %v", name, mustWake, behind, next)
		}
	}
	s := listening{isAwake: true, isBehind: true}
	expect(t, s.cover([]*delivery{young, old, older}, now), []*delivery{old, older})
	expect(t, []any{s.isAwake, s.isBehind, len(s.covered)}, []any{true, false, 2})
	expect(t, len(s.cover([]*delivery{young}, now)), 0)
	expect(t, []any{s.isAwake, s.covered == nil}, []any{false, true})
}

func TestWhoIsToldOfAnEnd(t *testing.T) {
	var a awaited
	one, two, three := make(chan waitResult, 1), make(chan waitResult, 1), make(chan waitResult, 1)
	expect(t, a.add("a", one), false)
	expect(t, a.ask(), []string{"a"})
	expect(t, []bool{a.add("a", two), a.add("b", three)}, []bool{false, true})
	a.ended(nil) // its time was over
	asked := a.ask()
	slices.Sort(asked)
	expect(t, asked, []string{"a", "b"})
	expect(t, a.isBehind(), false)
	a.drop("b", three)
	a.ended([]ending{{"a", OutcomeDone, []byte("1")}, {"b", OutcomeDead, nil}})
	expect(t, []any{string((<-one).value), string((<-two).value), len(three)}, []any{"1", "1", 0})
	expect(t, len(a.ask()), 0)
	a.add("c", three)
	a.fail(errClosed)
	expect(t, (<-three).err, errClosed)
}

// --- Progress

func TestProgressIsSentOnceASecond(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	var p progress
	say := func(text string, at time.Duration) string {
		if text != "" {
			p.text = text
		}
		sent, _ := p.due(now.Add(at))
		return sent
	}
	expect(t, []string{say("0.1", 0), say("0.2", 500*time.Millisecond), say("0.3", 999*time.Millisecond), say("", time.Second), say("", time.Hour)},
		[]string{"0.1", "", "", "0.3", ""})
	expect(t, say("1", 2*time.Hour), "1")
	expect(t, []string{p.take(), p.take()}, []string{"1", ""}) // the end may overtake what is on its way
	p.text, p.onItsWay = "2", "1"
	expect(t, []string{p.take(), p.take()}, []string{"2", ""})
}

func TestProgressThatIsNone(t *testing.T) {
	for _, fraction := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := aJob(Handler{}, 1, "").job.Progress(fraction, "x"); err == nil {
			t.Error(fraction)
		}
	}
	expect(t, (&Job{}).Progress(0.5, "") == nil, false)
}

// --- Many jobs in one command

func TestHowManyJobsGoInOneCommand(t *testing.T) {
	call := func(key string, size int, options ...any) adds {
		return adds{key: key, id: "x", payload: make([]byte, size), options: options}
	}
	var many []adds
	for range 2001 {
		many = append(many, call("a", 10))
	}
	sizes := func(all []adds) (found []int) {
		for _, chunk := range packed(all).places {
			found = append(found, len(chunk))
		}
		return found
	}
	expect(t, sizes(many), []int{1000, 1000, 1})
	expect(t, sizes([]adds{call("a", 1), call("b", 1), call("a", 1)}), []int{2, 1})
	expect(t, sizes([]adds{call("a", 1<<19), call("a", 1<<19), call("a", 1)}), []int{1, 2})
	expect(t, sizes([]adds{call("a", 2<<20), call("a", 1)}), []int{1, 1})
	expect(t, sizes([]adds{call("a", 1, "TTR", int64(5)), call("a", 2, "TTR", int64(5)), call("a", 1)}), []int{2, 1})
	alone := call("a", 1)
	alone.isAlone = true
	expect(t, sizes([]adds{call("a", 1), alone, alone, call("a", 1)}), []int{1, 1, 1, 1})
}

func TestIDsThatBelongIntoAShard(t *testing.T) {
	q := NewQueue(aQueue.client, "q", QueueOptions{Shards: 7})
	for _, key := range q.keys {
		id := q.idIn(key, "a/1/0")
		expect(t, q.key(id), key)
		expect(t, q.idIn(key, "a/1/0"), id)
	}
	expect(t, aQueue.idIn("q", "a/1/0"), "a/1/0")
}

func TestDeathsAreLookedForByAClockThatWasSetBack(t *testing.T) {
	begun := time.Now()
	since := func(looks ...[2]int64) int { // ms by the server's clock, s by ours
		place := &deathPlace{}
		for _, each := range looks {
			place.lookAt(each[0], begun.Add(time.Duration(each[1])*time.Second), begun)
		}
		return int(place.from)
	}
	first := [2]int64{5_000_000, 0}
	expect(t, since(first, [2]int64{5_060_000, 60}), 5_000_000)
	expect(t, since(first, [2]int64{4_000_000, 60}), 3_940_000)
	// By less than has passed since the first look: what died right after it did so at 4 970 000.
	expect(t, since(first, [2]int64{5_030_000, 60}), 4_970_000)
}
