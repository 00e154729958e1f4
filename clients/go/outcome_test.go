package dq

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const token = "1882361448423751680"

func aJob(handler Handler, attempt int, payload string) *Job {
	return &Job{ID: "id", Queue: "q", Token: token, Attempt: attempt, Payload: []byte(payload), codec: JSON, handler: &handler}
}

func queued(token string, maxAttempts int64, ladder ...any) []any {
	return []any{"token", []byte(token), "max-attempts", maxAttempts, "backoff", ladder}
}

// afterGet is what follows a failure, by what the queue says of the job; nil where that is nothing.
func afterGet(t *testing.T, job *Job, err error, reply any) []string {
	t.Helper()
	outcome := ended(job, err)
	if outcome.command[0] != "DQ.GET" {
		t.Fatalf("first %v", outcome.command)
	}
	if outcome.answered(reply) != open {
		return nil
	}
	return outcome.command[5:]
}

func expect(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSuccessIsAcknowledgedWithTheToken(t *testing.T) {
	outcome := ended(aJob(Handler{}, 1, ""), nil)
	expect(t, outcome.command, []string{"DQ.ACK", "q", "WITHTOKENS", "id", token})
	expect(t, outcome.answered(int64(1)), settled)
	expect(t, outcome.answered(int64(0)), lost)
}

func TestTheLadderOfTheJobGoesFirst(t *testing.T) {
	job := aJob(Handler{Backoff: []time.Duration{time.Second}}, 1, "")
	expect(t, afterGet(t, job, errors.New("no"), queued(token, 0, int64(1000))), []string{"REASON", "*errors.errorString: no"})
}

func TestTheLadderOfTheHandlerIsNextAndItsLastStepRepeats(t *testing.T) {
	handler := Handler{Backoff: []time.Duration{time.Second, 5 * time.Second}}
	for attempt, want := range map[int]string{1: "1000", 2: "5000", 9: "5000"} {
		said := afterGet(t, aJob(handler, attempt, ""), errors.New("no"), queued(token, 0))
		expect(t, said[:2], []string{"DELAY", want})
	}
}

func TestWithoutALadderTheWaitDoublesToAnHour(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 10_000: time.Hour} {
		delay := exponential(attempt, firstDelay, longestDelay)
		if delay < want || delay > want+want/4 {
			t.Errorf("attempt %d: %v", attempt, delay)
		}
	}
}

func TestAttemptsOfTheHandlerEndAJobWithoutItsOwn(t *testing.T) {
	handler := Handler{Attempts: 2}
	expect(t, afterGet(t, aJob(handler, 1, ""), errors.New("no"), queued(token, 0))[0], "DELAY")
	expect(t, afterGet(t, aJob(handler, 2, ""), errors.New("no"), queued(token, 0))[0], "FATAL")
	expect(t, afterGet(t, aJob(handler, 2, ""), errors.New("no"), queued(token, 9))[0], "DELAY")
}

func TestAFailureOfAJobThatSomebodyElseHasIsLost(t *testing.T) {
	job := aJob(Handler{}, 1, "")
	expect(t, ended(job, errors.New("no")).answered(queued("1", 0)), lost)
	expect(t, ended(job, errors.New("no")).answered(nil), lost)
}

func TestWhatAHandlerMaySay(t *testing.T) {
	job := aJob(Handler{}, 1, "")
	busy := fmt.Errorf("wrapped: %w", RetryIn(time.Minute, errors.New("busy")))
	expect(t, afterGet(t, job, busy, queued(token, 0, int64(1))), []string{"DELAY", "60000", "REASON", "wrapped: busy"})
	expect(t, ended(job, Snooze(time.Minute)).command[5:], []string{"SILENT", "DELAY", "60000"})
	expect(t, ended(job, GiveUp(errors.New("bad"))).command[5:], []string{"FATAL", "REASON", "bad"})
}

func TestNothingComesBackAtOnce(t *testing.T) {
	job := aJob(Handler{}, 1, "")
	expect(t, ended(job, Snooze(0)).command[7], "100")
	expect(t, afterGet(t, job, RetryIn(0, nil), queued(token, 0))[1], "100")
}

func TestWhoIsToldToStopIsGivenBackUncounted(t *testing.T) {
	job := aJob(Handler{}, 1, "")
	job.end(ErrStopping)
	expect(t, ended(job, errors.New("rpc: canceled")).command[5:], []string{"SILENT"})
	expect(t, ended(job, nil).command[0], "DQ.ACK")
}

func TestAJobThatWasToldBeforeItsHandlerBeganIsNotAcknowledged(t *testing.T) {
	worker, err := NewWorker(WorkerConfig{
		Queues:   []*Queue{NewQueue(redis.NewClient(&redis.Options{}), "q")},
		Handlers: []Handler{{Do: func(context.Context, *Job) error { t.Error("it ran"); return nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	link := worker.links[0]
	job := aJob(Handler{}, 1, "")
	job.link, link.held[job] = link, struct{}{}
	job.end(ErrStopping)
	worker.handled([]*Job{job}, worker.handle([]*Job{job}))
	expect(t, link.outcomes[0].command, []string{"DQ.NACK", "q", "id", "TOKEN", token, "SILENT"})
}

func TestReasonsAreCutAndAreUTF8(t *testing.T) {
	long := reason(errors.New(strings.Repeat("ä", 1000)))
	if len(long) > reasonBytes || !strings.HasSuffix(long, "ä") {
		t.Errorf("%d bytes: %q", len(long), long[len(long)-4:])
	}
	expect(t, reason(errors.New("\xff")), "*errors.errorString: ?")
}

func TestWhatWaitingCannotMendIsSaid(t *testing.T) {
	for said, word := range map[string]string{
		"ERR unknown command 'DQ.BPOP', with args": "loadmodule", "NOAUTH Authentication required.": "password",
		"WRONGPASS invalid username-password pair": "password", "NOPERM no permissions": "ACL",
		"WRONGTYPE Operation against a key": "another type", "ERR syntax error": "older",
	} {
		if end := fatal(fmt.Errorf("wrapped: %w", serverError(said))); end == nil && strings.HasPrefix(said, "NO") {
			t.Errorf("%s is not said", said)
		}
		if end := fatal(serverError(said)); end == nil || !strings.Contains(end.Error(), word) {
			t.Errorf("%s: %v", said, end)
		}
	}
}

func TestWhatPassesIsWaitedFor(t *testing.T) {
	for _, said := range []error{
		serverError("MISCONF Redis is configured"), serverError("UNBLOCKED force unblock"), serverError("LOADING Redis"),
		serverError("READONLY You can't write"), serverError("CLUSTERDOWN"), context.DeadlineExceeded, redis.Nil,
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
		if made.choose(aJob(Handler{}, 1, payload)) != want {
			t.Error(payload)
		}
	}
	expect(t, made.lease, time.Minute)
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
	job := aJob(Handler{}, 1, string(payload))
	var data map[string]string
	expect(t, job.Decode(&data), nil)
	expect(t, []any{job.Kind(), job.Headers(), data}, []any{"close", map[string]string{"x": "y"}, map[string]string{"a": "<ä>"}})
	if _, err := writeEnvelope([]byte("x"), "close", nil); err == nil {
		t.Error("bytes in an envelope")
	}
	if aJob(Handler{}, 1, "\xff").Decode(&data) == nil {
		t.Error("no JSON is decoded")
	}
}

func TestDurationsAndInstantsAreRoundedUp(t *testing.T) {
	expect(t, []int64{toMs(1), toMs(time.Millisecond), toMs(1001 * time.Microsecond)}, []int64{1, 1, 2})
	expect(t, instantMs(time.UnixMilli(5).Add(time.Nanosecond)), int64(6))
	expect(t, instantMs(time.UnixMilli(5)), int64(5))
}

func TestWeightsDecideWhichQueueComesFirst(t *testing.T) {
	members := []member{{key: "a", weight: 9}, {key: "b", weight: 1}}
	count := map[string]int{}
	for range 500 {
		count[(&fetches{members, true, "1000"}).command(1, 5*time.Second)[1]]++
		expect(t, (&fetches{members, false, "1000"}).command(1, time.Second)[1:4], []string{"a", "b", "1"})
	}
	if count["b"] == 0 || count["b"] > 150 {
		t.Errorf("%v", count)
	}
}

func TestOneHeartbeatForEachQueue(t *testing.T) {
	one, two := aJob(Handler{}, 1, ""), &Job{Queue: "r", ID: "x", Token: "5"}
	groups := byKey([]*Job{one, two, one})
	expect(t, forAll("DQ.TOUCH", "q", groups["q"], "TTR", "3000"),
		[]string{"DQ.TOUCH", "q", "IDS", "2", "id", token, "id", token, "TTR", "3000"})
	expect(t, forAll("DQ.NACK", "r", groups["r"], "SILENT"), []string{"DQ.NACK", "r", "IDS", "1", "x", "5", "SILENT"})
}

func TestABatchIsToldWhenAllOfItIsLost(t *testing.T) {
	one, two := &Job{}, &Job{}
	ctx, cancel := contextOf(context.Background(), []*Job{one, two})
	defer cancel(nil)
	one.end(ErrLost)
	one.end(ErrStopping)
	if ctx.Err() != nil || !one.Lost() || two.Lost() {
		t.Error("told too early")
	}
	two.end(ErrLost)
	expect(t, context.Cause(ctx), ErrLost)
}
