package dq

import (
	"bufio"
	"context"
	"io"
	"math/rand"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

var start = time.UnixMilli(1_000_000)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

type asked struct {
	claim, late int
	again       time.Time
}

func (s linkScheduler) asks(number, free, ms int) asked {
	claim, late, again := s.ask(number, free, at(ms))
	return asked{claim, late, again}
}

func TestALinkFetchesItsShare(t *testing.T) {
	expect(t, make(linkScheduler, 1).asks(0, 10, 0), asked{10, nobody, time.Time{}})
	expect(t, make(linkScheduler, 3).asks(0, 10, 0), asked{3, nobody, time.Time{}})
	expect(t, make(linkScheduler, 3).asks(0, 2, 0), asked{1, nobody, time.Time{}})
}

func TestOneLinkNeverPauses(t *testing.T) {
	all := make(linkScheduler, 1)
	expect(t, all.asks(0, 0, 0), asked{0, nobody, time.Time{}})
	for ms := range 10 {
		expect(t, all.asks(0, 1, ms), asked{1, nobody, time.Time{}})
		all.end(0, true, at(ms))
	}
}

func TestTheFetchThatWaitsLongestIsRecalled(t *testing.T) {
	all := make(linkScheduler, 3)
	all.asks(0, 2, 0)
	all.asks(1, 1, 10)
	expect(t, all.asks(2, 0, 20), asked{0, nobody, at(25)})
	expect(t, all.asks(2, 0, 25), asked{0, 0, at(50)})
	expect(t, all.asks(2, 0, 40), asked{0, nobody, at(50)}) // the other one is not recalled as well
	expect(t, all.asks(2, 0, 50), asked{0, 1, at(75)})      // but now: the first does not come back
	expect(t, all.asks(2, 0, 75), asked{0, 0, at(100)})
	all.end(1, true, at(80))
	expect(t, all.asks(2, 1, 80), asked{1, nobody, time.Time{}})
}

func TestWhenTheNextTurnComes(t *testing.T) {
	all := make(linkScheduler, 3)
	all.asks(0, 1, 0)
	expect(t, all.asks(1, 0, 100), asked{0, 0, at(125)})
	all.end(0, true, at(101))
	expect(t, all.asks(0, 1, 102), asked{0, nobody, at(351)}) // though there is room
	all.asks(1, 1, 102)
	all.asks(2, 0, 102)
	all.end(1, true, at(103)) // not recalled
	expect(t, all.asks(1, 1, 104), asked{0, nobody, time.Time{}})
	expect(t, all.asks(2, 1, 104), asked{1, nobody, time.Time{}}) // it waits for longer
	expect(t, all.asks(1, 0, 200), asked{0, 2, at(225)})
	all.end(2, false, at(201)) // recalled, but there was a job
	expect(t, all.asks(1, 1, 201), asked{1, nobody, time.Time{}})
	expect(t, all.asks(2, 1, 201), asked{1, nobody, time.Time{}})
	all.end(2, true, at(202)) // this time it was not
	expect(t, all.asks(2, 1, 202), asked{1, nobody, time.Time{}})
}

func TestALinkThatRestsHoldsUpNoOther(t *testing.T) {
	all := make(linkScheduler, 2)
	all.asks(0, 1, 0)
	all.end(0, true, at(1)) // and then its server is away
	expect(t, all.asks(1, 1, 10), asked{1, nobody, time.Time{}})
	all.end(1, false, at(20))
	all.asks(1, 0, 21)
	expect(t, all.asks(0, 1, 22), asked{0, nobody, time.Time{}}) // it comes back behind the other one
	expect(t, all.asks(1, 1, 23), asked{1, nobody, time.Time{}})
}

// simulation is a worker whose links find nothing until they are recalled. It moves by milliseconds.
type simulation struct {
	*testing.T
	linkScheduler
	random   *rand.Rand
	isUnfair bool // the first links always ask first
	places   int
	slowest  int   // answer to a recall
	claims   []int // 0: the link does not fetch
	backAt   []int // when it comes back; 0: it is not recalled
	since    []int // it fetches, or was recalled; or does not fetch
}

func (s *simulation) step(ms int) {
	for number := range s.linkScheduler {
		if s.backAt[number] == ms && ms > 0 {
			s.end(number, true, at(ms))
			s.claims[number], s.backAt[number], s.since[number] = 0, 0, ms
		}
	}
	order := s.random.Perm(len(s.linkScheduler))
	if s.isUnfair {
		slices.Sort(order)
	}
	for _, number := range order {
		if s.claims[number] == 0 {
			s.askFor(number, ms)
		}
	}
}

func (s *simulation) askFor(number, ms int) {
	free := s.places
	for _, claim := range s.claims {
		free -= claim
	}
	said := s.asks(number, free, ms)
	if said.claim > 0 {
		s.claims[number], s.since[number] = said.claim, ms
	}
	if said.claim > free {
		s.Error("more than there is room for", said, free)
	}
	if said.late == nobody {
		return
	}
	if waited := ms - s.since[said.late]; time.Duration(waited)*time.Millisecond < s.hold() || free > 0 || s.claims[said.late] == 0 {
		s.Error("recalled", said, waited, free)
	}
	s.since[said.late] = ms
	if s.backAt[said.late] == 0 {
		s.backAt[said.late] = ms + 1 + s.random.Intn(s.slowest)
	}
}

func TestNoLinkIsPassedOver(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		links := 1 + random.Intn(20)
		s := &simulation{
			T: t, linkScheduler: make(linkScheduler, links), random: random, isUnfair: seed%2 == 0,
			places: 1 + random.Intn(12), slowest: 1 + random.Intn(20),
			claims: make([]int, links), backAt: make([]int, links), since: make([]int, links),
		}
		longest := 250 + links*(25+s.slowest) + 10
		for ms := range 5000 {
			s.step(ms)
			for number, since := range s.since {
				if s.claims[number] == 0 && ms-since > longest {
					t.Fatal("passed over", seed, number, ms, longest)
				}
			}
		}
	}
}

// aLink is the first one of a worker that has never run.
func aLink(t *testing.T, queues ...*Queue) *link {
	handler := Handler{Do: func(context.Context, *Job) error { return nil }}
	worker, err := NewWorker(WorkerConfig{Queues: queues, Handlers: []Handler{handler}, Wait: time.Minute})
	expect(t, err, nil)
	return worker.links[0]
}

var another = NewQueue(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "q")

func TestHowLongAFetchMayWait(t *testing.T) {
	expect(t, aLink(t, aQueue).longestWait(), time.Minute)
	l := aLink(t, aQueue, another)
	expect(t, l.longestWait(), turnPause) // the number of the connection is not known
	l.waiting.known.Store(&connection{id: 17})
	expect(t, l.longestWait(), time.Minute)
	l.mayNotUnblock.Store(true)
	expect(t, l.longestWait(), turnPause)
	l.wait = time.Millisecond
	expect(t, l.longestWait(), time.Millisecond)
}

func TestARecallIsSentOnceToAFetchThatWaits(t *testing.T) {
	l := aLink(t, aQueue, another)
	server, client := net.Pipe()
	defer server.Close()
	l.control.conn, l.control.in = client, bufio.NewReader(client)
	command := string(resp.Append(nil, []string{"DQ.UNBLOCK", "17"}))
	said := make(chan string)
	go func() {
		sent := make([]byte, len(command))
		for answer := range said {
			_, _ = io.ReadFull(server, sent)
			expect(t, string(sent), command)
			_, _ = io.WriteString(server, answer)
		}
	}()
	defer close(said)
	l.isFetching.Store(true)
	l.recall()
	expect(t, l.endRecalled(), nil) // it is not connected yet
	l.waiting.known.Store(&connection{id: 17})
	expect(t, l.endRecalled(), nil) // that was dropped
	l.isFetching.Store(false)
	l.recall()
	expect(t, l.endRecalled(), nil) // no fetch waits
	l.isFetching.Store(true)
	for _, each := range []struct {
		answer  string
		refused bool
	}{{":0\r\n", false}, {":1\r\n", false}, {"-NOPERM no\r\n", true}} {
		l.recall()
		said <- each.answer
		expect(t, l.endRecalled(), nil)
		expect(t, l.mayNotUnblock.Load(), each.refused)
		expect(t, l.endRecalled(), nil)
	}
	l.recall()
	expect(t, l.endRecalled(), nil) // it is not tried again
}

func TestALinkWhoseServerIsAwayHoldsNoPlaces(t *testing.T) {
	slow := func(context.Context, string, string) (net.Conn, error) {
		time.Sleep(100 * time.Millisecond)
		return nil, io.EOF
	}
	away := func(address string) *Queue {
		return NewQueue(redis.NewClient(&redis.Options{Addr: address, Dialer: slow}), "q")
	}
	worker := aLink(t, away("one:1"), away("two:1")).worker.(*Worker)
	ended := make(chan error)
	go func() { ended <- worker.Run(t.Context()) }()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		worker.mu.Lock()
		claimed := worker.claimed
		worker.mu.Unlock()
		expect(t, claimed, 0)
	}
	worker.Stop()
	expect(t, <-ended, nil)
}
