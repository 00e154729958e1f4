package dq

import (
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Stats are a queue's figures; of a sharded queue, the sums of its shards.
type Stats struct {
	Delayed, Ready, Reserved, Dead, Blocked, Done int
	Bytes, DoneBytes                              int64 // as MAXBYTES and DONEBYTES count them
	Recurring, Groups                             int
	RateUsed                                      int64         // the cost of the deliveries in the current window of RATE
	NextDue                                       time.Time     // zero: no job is delayed
	OldestReady                                   time.Duration // age of the oldest ready job; 0: none
	WaitingClients                                int
	// Paused: the queue, or one of its shards, delivers nothing until PausedUntil (zero: until it is resumed).
	Paused      bool
	PausedUntil time.Time
	Totals      Totals
	// Lateness is how long after its due time a job was delivered.
	LatenessCount                          int64
	LatenessSum, LatenessMean, LatenessMax time.Duration
	LatenessBuckets                        []LatenessBucket
	// Other has numbers of a newer server that this version does not know.
	Other map[string]int64
}

// Totals count what happened since the queue was created or loaded on its server.
type Totals struct {
	Added, Delivered, Acked, Nacked, TimedOut, Died, Deleted, Expired, Missed int64
}

// LatenessBucket counts the deliveries that were at most UpTo late; a negative UpTo means no bound.
type LatenessBucket struct {
	UpTo  time.Duration
	Count int64
}

// addUp makes one Stats of the replies of all shards.
func addUp(shards []map[string]any) *Stats {
	left := map[string]int64{}
	for _, fields := range shards {
		for name, value := range fields {
			if number, ok := value.(int64); ok {
				left[name] += number
			}
		}
	}
	total := func(name string) int64 {
		sum := left[name]
		delete(left, name)
		return sum
	}
	count := func(name string) int { return int(total(name)) }
	s := &Stats{
		Delayed: count("delayed"), Ready: count("ready"), Reserved: count("reserved"), Dead: count("dead"),
		Blocked: count("blocked"), Done: count("done"), Bytes: total("bytes"), DoneBytes: total("done-bytes"),
		Recurring: count("recurring"), Groups: count("groups"), RateUsed: total("rate-used"), WaitingClients: count("waiting-clients"),
		Totals: Totals{
			total("added"), total("delivered"), total("acked"), total("nacked"), total("timed-out"), total("died"),
			total("deleted"), total("expired"), total("missed"),
		},
		LatenessCount: total("lateness-count"), LatenessSum: time.Duration(total("lateness-sum")) * time.Microsecond,
		Other: left,
	}
	if s.LatenessCount > 0 {
		s.LatenessMean = s.LatenessSum / time.Duration(s.LatenessCount)
	}
	for _, fields := range shards {
		s.addExtremes(fields)
	}
	for name := range left { // fields that are not sums
		if name == "next-due" || name == "oldest-ready-ms" || name == "paused" || strings.HasPrefix(name, "lateness-") {
			delete(left, name)
		}
	}
	return s
}

func (s *Stats) addExtremes(fields map[string]any) {
	if due := resp.Time(fields["next-due"]); !due.IsZero() && (s.NextDue.IsZero() || due.Before(s.NextDue)) {
		s.NextDue = due
	}
	s.addPause(resp.Int(fields["paused"]))
	s.OldestReady = max(s.OldestReady, resp.Duration(fields["oldest-ready-ms"]))
	s.LatenessMax = max(s.LatenessMax, time.Duration(resp.Int(fields["lateness-max"]))*time.Microsecond)
	for at, each := range resp.List(fields["lateness-buckets"]) {
		pair := resp.List(each)
		if len(pair) != 2 {
			continue
		}
		if at == len(s.LatenessBuckets) {
			bound := time.Duration(-1)
			if pair[0] != nil {
				bound = time.Duration(resp.Int(pair[0])) * time.Microsecond
			}
			s.LatenessBuckets = append(s.LatenessBuckets, LatenessBucket{UpTo: bound})
		}
		s.LatenessBuckets[at].Count += resp.Int(pair[1])
	}
}

// addPause keeps the pause that ends last. until is an instant in ms, -1 for a pause without end, 0 for no pause.
func (s *Stats) addPause(until int64) {
	switch {
	case until == 0 || s.Paused && s.PausedUntil.IsZero():
	case until < 0:
		s.Paused, s.PausedUntil = true, time.Time{}
	case !s.Paused || time.UnixMilli(until).After(s.PausedUntil):
		s.Paused, s.PausedUntil = true, time.UnixMilli(until)
	}
}
