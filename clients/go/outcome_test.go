package dq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const token = "1882361448423751680"

var aQueue = NewQueue(redis.NewClient(&redis.Options{}), "q")

// isLost is what an answer says of an outcome.
func isLost(o *outcome, reply any) bool {
	lost, _ := o.heard(reply)
	return lost
}

func aJob(handler Handler, attempt int, payload string) *delivery {
	d := &delivery{
		jobKey: jobKey{"q", "id"}, token: token, attempt: attempt, payload: []byte(payload), source: aQueue, handler: &handler,
	}
	d.job = jobOf(d, time.Time{})
	return d
}

// after is the command that follows from how a handler ended.
func after(d *delivery, err error) []string { return settled(d, judge(err, d)).command() }

func expect(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSuccessIsAcknowledgedWithTheToken(t *testing.T) {
	outcome := settled(aJob(Handler{}, 1, ""), judge(nil, nil))
	expect(t, outcome.command(), []string{"DQ.ACK", "q", "WITHTOKENS", "IDS", "1", "id", token})
	expect(t, []bool{isLost(outcome, int64(1)), isLost(outcome, int64(0))}, []bool{false, true})
}

func TestAnEndThatIsSentAgainIsNotLost(t *testing.T) {
	for _, err := range []error{nil, errors.New("no")} {
		d := aJob(Handler{}, 1, "")
		outcome := settled(d, judge(err, d))
		expect(t, isLost(outcome, nil), true)
		outcome.wasSent = true
		expect(t, []bool{isLost(outcome, nil), isLost(outcome, int64(0))}, []bool{false, false})
	}
}

func TestTheLadderOfTheJobGoesFirst(t *testing.T) {
	d := aJob(Handler{Backoff: []time.Duration{time.Second}}, 1, "")
	d.terms.ladder = new(time.Duration)
	expect(t, after(d, errors.New("no"))[5:], []string{"FAIL", "REASON", "*errors.errorString: no"})
}

func TestTheLadderOfTheHandlerIsNextAndItsLastStepRepeats(t *testing.T) {
	handler := Handler{Backoff: []time.Duration{time.Second, 5 * time.Second}}
	for attempt, want := range map[int]string{1: "1000", 2: "5000", 9: "5000"} {
		expect(t, after(aJob(handler, attempt, ""), errors.New("no"))[5:8], []string{"FAIL", "DELAY", want})
	}
}

func TestWithoutALadderTheServersHolds(t *testing.T) {
	expect(t, after(aJob(Handler{}, 5, ""), errors.New("no"))[5:], []string{"FAIL", "REASON", "*errors.errorString: no"})
}

func TestTheLeastLimitOfAttemptsEndsAJob(t *testing.T) {
	handler := Handler{Attempts: 2}
	mode := func(attempt, limit int) string {
		d := aJob(handler, attempt, "")
		d.terms.maxAttempts = limit
		expect(t, jobOf(d, time.Time{}).IsLastAttempt(), attempt >= 2 || attempt == limit)
		return after(d, errors.New("no"))[5]
	}
	expect(t, []string{mode(1, 0), mode(2, 0), mode(2, 9), mode(1, 9), mode(1, 1)},
		[]string{"FAIL", "FATAL", "FATAL", "FAIL", "FATAL"})
}

func TestAJobOverItsLimitIsNotRun(t *testing.T) {
	for _, each := range []struct {
		attempt, own, handlers int
		isUsedUp, isLast       bool
	}{
		{9, 0, 0, false, false}, {1, 1, 0, false, false}, {2, 2, 0, false, true}, {2, 9, 2, false, true}, {3, 9, 2, true, false},
		{3, 2, 9, true, false}, {3, 3, 9, false, true},
	} {
		d := aJob(Handler{Attempts: each.handlers}, each.attempt, "")
		d.terms.maxAttempts = each.own
		expect(t, []bool{d.isUsedUp(), d.attempt > 1 && d.attempt == d.limit()}, []bool{each.isUsedUp, each.isLast})
	}
	used := dead(aJob(Handler{}, 3, ""), usedUpReason).command()
	expect(t, used[5:], []string{"FATAL", "REASON", "attempts used up; its workers were lost"})
}

func TestAnUnknownKindWaitsForAWorkerThatKnowsIt(t *testing.T) {
	for attempt, want := range map[int][]string{
		1:  {"FAIL", "DELAY", "60000", "REASON", `unknown kind "x"`},
		13: {"FAIL", "DELAY", "780000", "REASON", `unknown kind "x"`},
		14: {"FATAL", "REASON", `unknown kind "x"`},
	} {
		d := aJob(Handler{}, attempt, `{"dq":1,"kind":"x","data":1}`)
		expect(t, unknown(d).command()[5:], want)
		if d.unknown = attempt - 1; attempt < 14 {
			expect(t, unknown(d).ahead, [][]string{{"DQ.STEP", "q", "id", token, "dq:unknown", strconv.Itoa(attempt)}})
		}
	}
	long := aJob(Handler{}, 14, `{"dq":1,"kind":"`+strings.Repeat("x", 2000)+`","data":1}`)
	expect(t, unknown(long).reason, `unknown kind "`+strings.Repeat("x", 100)+`"`)
}

func TestDeliveriesToWorkersThatDoNotKnowTheKindAreNoAttemptsOfTheHandler(t *testing.T) {
	for _, each := range []struct {
		attempt    int
		kept       string
		own, limit int
	}{{6, "5", 0, 8}, {8, "5", 0, 8}, {2, "5", 0, 4}, {7, "5", 7, 7}, {7, "", 0, 3}, {7, "-1", 0, 3}, {7, "x", 0, 3}, {7, strings.Repeat("9", 5000), 0, 3}} {
		r := row{attempt: each.attempt, terms: terms{maxAttempts: each.own}, steps: map[string][]byte{"dq:unknown": []byte(each.kept)}}
		d := deliveryOf(aQueue, "q", r)
		d.handler = &Handler{Attempts: 3}
		expect(t, []int{d.limit(), jobOf(d, time.Time{}).MaxAttempts}, []int{each.limit, each.limit})
	}
}

func TestWhatHasCutTheConnectionTwiceIsNotSentAgain(t *testing.T) {
	l := &link{worker: &Worker{logger: slog.New(slog.DiscardHandler)}}
	large := []string{"DQ.ADD", "q", "child", strings.Repeat("x", cuttingBytes)}
	o := &outcome{of: aJob(Handler{}, 1, ""), suspension: &suspension{before: [][]string{large}, rest: []string{"AFTER", "1", "child"}}}
	for _, each := range []struct {
		err   error
		first string
	}{{io.EOF, "EVAL"}, {os.ErrDeadlineExceeded, "EVAL"}, {io.EOF, "DQ.NACK"}} {
		l.countCut([]*outcome{o}, each.err, true)
		expect(t, o.command()[0], each.first)
	}
	if reason := o.reason; o.mode != "FAIL" || !strings.Contains(reason, "bytes cut the connection 2 times") {
		t.Error(o.mode, reason)
	}
}

func TestASecondStopEndsTheWaitForTheLastAnswers(t *testing.T) {
	w, err := NewWorker(WorkerConfig{Queues: []*Queue{aQueue}, Handlers: []Handler{{Do: func(context.Context, *Job) error { return nil }}}})
	expect(t, err, nil)
	ended := make(chan bool)
	go func() { w.finish(time.Now().Add(time.Hour)); close(ended) }()
	w.Stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it waits on")
	}
}

func TestTheTextOfAnErrorIsBounded(t *testing.T) {
	itself := &PanicError{}
	itself.Value = itself
	if text := itself.Error(); len(text) > guard.TextBytes || !strings.HasPrefix(text, "panic: panic: ") {
		t.Error(len(text))
	}
	v := judge(fmt.Errorf("x: %w", errors.New(strings.Repeat("y", 1<<20))), aJob(Handler{}, 1, ""))
	expect(t, len(v.reason), reasonBytes)
}

func TestWhatAHandlerMaySay(t *testing.T) {
	d := aJob(Handler{}, 1, "")
	d.terms.ladder = new(time.Duration)
	busy := fmt.Errorf("wrapped: %w", RetryIn(time.Minute, errors.New("busy")))
	expect(t, after(d, busy)[5:], []string{"FAIL", "DELAY", "60000", "REASON", "wrapped: busy"})
	expect(t, after(d, Snooze(time.Minute))[5:], []string{"SILENT", "DELAY", "60000"})
	expect(t, after(d, GiveUp(errors.New("bad")))[5:], []string{"FATAL", "REASON", "bad"})
	expect(t, after(d, RetryIn(time.Minute, GiveUp(errors.New("bad"))))[5], "FAIL") // the outermost
}

func TestNothingComesBackAtOnce(t *testing.T) {
	d := aJob(Handler{}, 1, "")
	expect(t, after(d, Snooze(0))[7], "100")
	expect(t, after(d, RetryIn(0, nil))[7], "100")
}

func TestADelayThatIsNoneIsAsIfItWereNotSaid(t *testing.T) {
	d := aJob(Handler{Backoff: []time.Duration{7 * time.Second}}, 1, "")
	for _, err := range []error{RetryIn(-1, nil), Snooze(-time.Hour)} {
		expect(t, after(d, err)[5:8], []string{"FAIL", "DELAY", "7000"})
		expect(t, judge(err, d).unfit != "", true)
	}
}

func TestWhatTheServerRefusesIsLeftOut(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	for _, err := range []error{RetryIn(century, errors.New("no")), Snooze(century), errors.New("no"), GiveUp(errors.New("no"))} {
		d := aJob(Handler{Backoff: []time.Duration{century}}, 1, "")
		outcome := settled(d, judge(err, d))
		var said [][]string
		for left := true; left; left = outcome.refused("ERR no") {
			said = append(said, outcome.command()[5:])
		}
		last := said[len(said)-1]
		if len(said) > 6 || len(last) != 1 || last[0] == "SILENT" {
			t.Error(said)
		}
		if len(said) > 2 { // where only the delay is refused, the server's ladder holds
			expect(t, said[len(said)-2][:2], []string{"FAIL", "REASON"})
		}
	}
	expect(t, (&outcome{}).refused("ERR no"), false)
}

func TestWhoIsToldToStopIsGivenBackUncounted(t *testing.T) {
	d := aJob(Handler{}, 1, "")
	d.end(ErrStopping)
	expect(t, after(d, errors.New("rpc: canceled"))[5:], []string{"SILENT"})
	expect(t, after(d, nil)[0], "DQ.ACK")
}

func TestWhatCannotBeDecodedIsDeadAtOnce(t *testing.T) {
	for payload, do := range map[string]Func{
		"no JSON":                         Typed(func(context.Context, *Job, int) error { return nil }),
		"null":                            Typed(func(context.Context, *Job, *int) error { return nil }),
		`{"dq":1,"kind":"a","data":null}`: Typed(func(context.Context, *Job, map[string]int) error { return nil }),
		" null ":                          Typed(func(context.Context, *Job, int) error { return nil }),
		`{"dq":1,"kind":"b","data":null}`: Typed(func(context.Context, *Job, struct{ Number int }) error { return nil }),
		`"explodes"`:                      Typed(func(context.Context, *Job, explosive) error { return nil }),
	} {
		d := aJob(Handler{}, 1, payload)
		said := after(d, fmt.Errorf("wrapped: %w", do(t.Context(), d.job)))
		if said[5] != "FATAL" || !strings.HasPrefix(said[7], "payload cannot be decoded: ") {
			t.Errorf("%s: %v", payload, said)
		}
	}
	other := aJob(Handler{}, 1, "no JSON")
	expect(t, after(aJob(Handler{}, 1, ""), other.job.Decode(new(int)))[5], "FAIL")
	null := aJob(Handler{}, 1, "null").job
	expect(t, Typed(func(context.Context, *Job, any) error { return nil })(t.Context(), null), nil)
	expect(t, Typed(func(context.Context, *Job, struct{}) error { return nil })(t.Context(), null), nil)
	expect(t, Typed(func(context.Context, *Job, time.Time) error { return nil })(t.Context(), null), nil)
}

type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("boom") }

func TestAJobThatWasToldBeforeItsHandlerBeganIsNotAcknowledged(t *testing.T) {
	worker, err := NewWorker(WorkerConfig{
		Queues:   []*Queue{NewQueue(redis.NewClient(&redis.Options{}), "q")},
		Handlers: []Handler{{Do: func(context.Context, *Job) error { t.Error("it ran"); return nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	link := worker.links[0]
	d := aJob(Handler{}, 1, "")
	d.link, d.isHeld, link.inFlight[d.jobKey] = link, true, d
	d.end(ErrStopping)
	worker.attempt([]*delivery{d}, func() {})
	expect(t, link.outcomes[0].command(), []string{"DQ.NACK", "q", "id", "TOKEN", token, "SILENT"})
	expect(t, len(link.inFlight), 0)
}

func TestReasonsAreCutAndAreUTF8(t *testing.T) {
	long := judge(errors.New(strings.Repeat("ä", 1000)), aJob(Handler{}, 1, "")).reason
	if len(long) > reasonBytes || !strings.HasSuffix(long, "ä") {
		t.Errorf("%d bytes: %q", len(long), long[len(long)-4:])
	}
	expect(t, judge(errors.New("\xff"), aJob(Handler{}, 1, "")).reason, "*errors.errorString: ?")
}

func TestWhatWaitingCannotMendIsSaid(t *testing.T) {
	for said, word := range map[string]string{
		"ERR unknown command 'DQ.BPOP', with args": "loadmodule", "NOAUTH Authentication required.": "password",
		"WRONGPASS invalid username-password pair": "password", "NOPERM no permissions": "ACL",
		"WRONGTYPE Operation against a key": "another type", "ERR syntax error": "older",
	} {
		if end := fatal(fmt.Errorf("wrapped: %w", resp.Error(said))); end == nil && strings.HasPrefix(said, "NO") {
			t.Errorf("%s is not said", said)
		}
		if end := fatal(resp.Error(said)); end == nil || !strings.Contains(end.Error(), word) {
			t.Errorf("%s: %v", said, end)
		}
	}
}

func TestWhatPassesIsWaitedFor(t *testing.T) {
	for _, said := range []error{
		resp.Error("MISCONF Redis is configured"), resp.Error("UNBLOCKED force unblock"), resp.Error("LOADING Redis"),
		resp.Error("READONLY You can't write"), resp.Error("CLUSTERDOWN"), context.DeadlineExceeded, redis.Nil,
	} {
		if end := fatal(said); end != nil {
			t.Errorf("%v: %v", said, end)
		}
	}
}

func TestHandlersByKind(t *testing.T) {
	do := func(context.Context, *Job) error { return nil }
	made, err := newHandlers([]Handler{{Do: do, Kind: "one"}, {Do: do, Lease: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	one, other := made.byKind["one"], made.other
	for payload, want := range map[string]*Handler{
		`{"dq":1,"kind":"one","data":1}`: one, `{"dq":1,"kind":"two","data":1}`: other, `{}`: other,
		`{"dq":2,"kind":"one","data":1}`: nil,
	} {
		if made.choose(aJob(Handler{}, 1, payload).opened) != want {
			t.Error(payload)
		}
	}
	for _, bad := range [][]Handler{
		{}, {{}}, {{Do: do}, {Do: do}}, {{Do: do, Kind: "a"}, {Do: do, Kind: "a"}}, {{Do: do, Batch: 2}}, {{Do: do, Attempts: -1}},
	} {
		if _, err := newHandlers(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestWhatIsNoEnvelope(t *testing.T) {
	for _, payload := range []string{
		"", "{", "[]", `{"dq":1}`, `{"dq":"1","kind":"a","data":1}`, `{"dq":true,"kind":"a","data":1}`,
		`{"DQ":1,"kind":"a","data":1}`, `{"dq":1,"Kind":"a","data":1}`, `{"dq":1,"data":1}`, `{"a":"dq"}`, "\xff",
	} {
		if readEnvelope([]byte(payload)) != nil {
			t.Error(payload)
		}
	}
}

func TestDataKindAndHeaders(t *testing.T) {
	payload, err := writeEnvelope(map[string]string{"a": "<ä>"}, "close", map[string]string{"x": "y"})
	expect(t, string(payload), `{"dq":1,"kind":"close","data":{"a":"<ä>"},"headers":{"x":"y"}}`)
	expect(t, err, nil)
	job := aJob(Handler{}, 1, string(payload)).job
	var data map[string]string
	expect(t, job.Decode(&data), nil)
	expect(t, []any{job.Kind(), job.Headers(), data}, []any{"close", map[string]string{"x": "y"}, map[string]string{"a": "<ä>"}})
	if _, err := writeEnvelope([]byte("x"), "close", nil); err == nil {
		t.Error("bytes in an envelope")
	}
	if aJob(Handler{}, 1, "\xff").job.Decode(&data) == nil {
		t.Error("no JSON is decoded")
	}
}

func TestDurationsAndInstantsAreRoundedUp(t *testing.T) {
	expect(t, []int64{resp.Ms(1), resp.Ms(time.Millisecond), resp.Ms(1001 * time.Microsecond)}, []int64{1, 1, 2})
	expect(t, resp.InstantMs(time.UnixMilli(5).Add(time.Nanosecond)), int64(6))
	expect(t, resp.InstantMs(time.UnixMilli(5)), int64(5))
}

func TestWhichLeaseAJobHas(t *testing.T) {
	do := func(context.Context, *Job) error { return nil }
	a, b, other := Handler{Do: do, Kind: "a", Lease: time.Second}, Handler{Do: do, Kind: "b"}, Handler{Do: do, Lease: 9 * time.Second}
	for _, each := range []struct {
		handlers []Handler
		worker   time.Duration
		option   string
		of       *Handler
		ttr      time.Duration
		given    time.Duration
		wanted   time.Duration
	}{
		{[]Handler{a}, 0, "TTR", &a, 5 * time.Second, time.Second, time.Second},
		{[]Handler{a, b}, 0, "", &a, serverTTR, serverTTR, time.Second},
		{[]Handler{a, b}, 0, "", &b, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{[]Handler{a, b}, 7 * time.Second, "LEASE", &b, serverTTR, 7 * time.Second, 7 * time.Second},
		{[]Handler{a, b}, 7 * time.Second, "LEASE", &b, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{[]Handler{a, other}, 0, "LEASE", &a, 5 * time.Second, 5 * time.Second, time.Second},
		{[]Handler{other}, 0, "LEASE", &other, serverTTR, 9 * time.Second, 9 * time.Second},
		{[]Handler{other}, 0, "LEASE", &other, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{[]Handler{other}, 7 * time.Second, "LEASE", &other, serverTTR, 7 * time.Second, 9 * time.Second},
		{[]Handler{b}, 0, "", &b, serverTTR, serverTTR, serverTTR},
	} {
		made, err := newHandlers(each.handlers)
		expect(t, err, nil)
		l := newLeases(made, each.worker)
		got := []any{l.option, l.given(each.ttr), l.wanted(each.of, each.ttr)}
		if want := []any{each.option, each.given, each.wanted}; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %v", each, got)
		}
	}
}

func TestWeightsDecideWhichQueueComesFirst(t *testing.T) {
	members := []member{{key: "a", weight: 9}, {key: "b", weight: 1}}
	count := map[string]int{}
	for range 500 {
		count[(&fetches{members: members, isWeighted: true}).command(1, 5*time.Second, time.Now())[1]]++
		expect(t, (&fetches{members: members}).command(1, time.Second, time.Now())[1:4], []string{"a", "b", "1"})
	}
	if count["b"] == 0 || count["b"] > 150 {
		t.Errorf("%v", count)
	}
}

func TestOneHeartbeatForEachQueue(t *testing.T) {
	one, two := aJob(Handler{}, 1, ""), &delivery{jobKey: jobKey{"r", "x"}, token: "5"}
	groups := byKey([]*delivery{one, two, one})
	expect(t, forAll("DQ.TOUCH", "q", groups["q"]),
		[]string{"DQ.TOUCH", "q", "IDS", "2", "id", token, "id", token})
	expect(t, forAll("DQ.NACK", "r", groups["r"], "SILENT"), []string{"DQ.NACK", "r", "IDS", "1", "x", "5", "SILENT"})
}

func TestABatchIsToldWhenAllOfItIsLost(t *testing.T) {
	one, two := aJob(Handler{}, 1, ""), aJob(Handler{}, 1, "")
	ctx, cancel := contextOf(context.Background(), []*delivery{one, two})
	defer cancel(nil)
	one.end(ErrLost)
	one.end(ErrStopping)
	if ctx.Err() != nil || !one.job.Lost() || two.job.Lost() {
		t.Error("told too early")
	}
	two.end(ErrLost)
	expect(t, context.Cause(ctx), ErrLost)
}

func TestAFetchThatGaveWayGoesOnWithItsWaitForABatch(t *testing.T) {
	f := &fetches{members: []member{{key: "q"}}, fill: Fill{50, 2 * time.Second}}
	begin := time.Now()
	fill := func(count int, after time.Duration) []string {
		return f.command(count, 5*time.Second, begin.Add(after))[5:8]
	}
	expect(t, fill(100, 0), []string{"FILL", "50", "2000"})
	expect(t, fill(40, 0), []string{"FILL", "40", "2000"})
	expect(t, fill(1, 0), extras[:3])
	f.fetched(false, begin)
	f.fetched(false, begin.Add(time.Second))
	expect(t, fill(100, 1500*time.Millisecond), []string{"FILL", "50", "500"})
	expect(t, fill(100, time.Minute), []string{"FILL", "50", "1"})
	f.fetched(true, begin)
	expect(t, fill(100, time.Minute), []string{"FILL", "50", "2000"})
}

func TestAFillIsWithinItsBatch(t *testing.T) {
	do := func(context.Context, []*Job) error { return nil }
	for _, fill := range []Fill{{1, time.Second}, {11, time.Second}, {5, 0}, {0, time.Second}} {
		if _, err := newHandlers([]Handler{{DoBatch: do, Batch: 10, Fill: fill}}); err == nil {
			t.Errorf("%v is no mistake", fill)
		}
	}
}

func TestPlainEndsOfAQueueShareACommand(t *testing.T) {
	l, d := aLink(t, aQueue), func(id string) *delivery {
		made := aJob(Handler{}, 1, "")
		made.id = id
		return made
	}
	var told []*outcome
	for _, id := range []string{"a", "b", "c"} {
		told = append(told, settled(d(id), verdict{way: succeeded, wait: unsaid}))
	}
	told = append(told, returned(d("d")))
	expect(t, strings.Count(string(pack(nil, told)), "DQ."), 2)
	for _, each := range told {
		l.tell(each)
	}
	l.takeOutcomes(len(told))
	answers := "*3\r\n:1\r\n:0\r\n:1\r\n$5\r\nready\r\n"
	untold, failure := l.hear(&line{in: bufio.NewReader(strings.NewReader(answers))}, told)
	expect(t, []any{len(untold), failure, len(l.unanswered)}, []any{0, error(nil), 0})
	for at, why := range []error{nil, ErrLost, nil, nil} {
		expect(t, told[at].of.why(), why)
	}
	refused := "-LOADING is loading\r\n"
	_, failure = l.hear(&line{in: bufio.NewReader(strings.NewReader(refused))}, told[:3])
	expect(t, []any{l.pending(), failure}, []any{3, resp.Error("LOADING is loading")})
}

func TestOptionsThatAreNotSaidCostNothing(t *testing.T) {
	call := make(words, 0, 8)
	expect(t, testing.AllocsPerRun(100, func() { (&JobOptions{}).words(call) }), 0.0)
}
