package dq

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

// WorkerConfig configures [NewWorker]. Queues and Handlers are required; the rest has defaults.
type WorkerConfig struct {
	// Queues are served in strict order; with Weights, each comes first in its share of the fetches.
	Queues  []*Queue
	Weights []float64
	// Handlers has at most one handler for each kind.
	Handlers []Handler
	// Concurrency is how many handlers run at a time (default 10).
	Concurrency int
	// Prefetch is how many more jobs are fetched than can start, so that short handlers need not wait for the network
	// (default 0).
	Prefetch int
	// Lease is the lease of jobs without a TTR of their own or of their queue, and whose kind has no Lease. Each
	// handler's Lease goes first.
	Lease time.Duration
	// Drain is how long handlers may go on when the worker stops (default 25 s; negative: not at all).
	Drain time.Duration
	// Wait is how long one fetch waits at the server before it is sent again (default 5 s).
	Wait time.Duration
	// Around is middleware around all handlers; the first is outermost.
	Around []Around
	Hooks  []Hooks
	// Health is an address ("127.0.0.1:8081") at which [Worker.HealthHandler] answers while the worker runs. Or it is
	// the path of a file, whose time is set each second while the worker is healthy.
	Health string
	Logger *slog.Logger
}

// Worker runs handlers on the jobs of one or several queues.
type Worker struct {
	concurrency, prefetch, capacity int
	drain, wait                     time.Duration
	leases                          leases
	handlers                        *handlers
	ruled                           []*Handler // whose rules are still to be said, to the first queue
	first                           *Queue
	layers                          []Around
	hooks                           []Hooks
	logger                          *slog.Logger
	links                           []*link
	base                            context.Context

	stops    chan struct{}
	fatal    chan *ConfigurationError
	draining chan struct{}    // closed when the worker stops
	news     chan struct{}    // something ended
	handed   chan []*delivery // over, to goroutines that wait for more
	hasRun   atomic.Bool
	hasEnded atomic.Bool
	health   string
	said     atomic.Value // the last error of the server that was logged
	saidOff  sync.Map     // commands that are refused
	deaths   *deaths      // nil: no hook wants them
	gaveBack atomic.Int64 // how many jobs were given back when the worker stopped

	mu        sync.Mutex
	room      *sync.Cond
	scheduler linkScheduler
	isHungry  bool // the only supplier waits for room: a fetch follows
	backlog   []*delivery
	running   int // handlers
	reporting int // reports of lost jobs that still run
	inHand    int
	suspects  map[*delivery]struct{} // at their last attempt: the server is asked how the one before ended
	killer    *delivery              // may have ended its workers, and will run alone
	alone     *delivery              // such a job that runs
	returning []*delivery            // such jobs that were given back, until the server has confirmed it
	isolation isolation              // for such jobs
	isWaiting bool                   // a timer looks whether jobs that wait for ends can begin
	claimed   int                    // places that fetches under way have claimed
	suppliers int
}

// NewWorker checks the configuration and creates a worker, which connects in [Worker.Run].
func NewWorker(config WorkerConfig) (*Worker, error) {
	made, err := newHandlers(config.Handlers)
	if err != nil {
		return nil, err
	}
	switch {
	case len(config.Queues) == 0:
		return nil, &ConfigurationError{What: "the worker has no queue"}
	case config.Weights != nil && len(config.Weights) != len(config.Queues):
		return nil, &ConfigurationError{What: "weights: one for each queue"}
	case slices.ContainsFunc(config.Around, func(each Around) bool { return each == nil }):
		return nil, &ConfigurationError{What: "Around has a nil"}
	case config.Concurrency < 0 || config.Prefetch < 0 || config.Lease < 0 || config.Wait < 0:
		return nil, &ConfigurationError{What: "Concurrency, Prefetch, Lease and Wait are 0 or more"}
	}
	for at, queue := range config.Queues {
		if queue == nil {
			return nil, &ConfigurationError{What: fmt.Sprintf("Queues[%d] is nil: see the error of Open", at)}
		}
	}
	for _, weight := range config.Weights {
		if weight <= 0 {
			return nil, &ConfigurationError{What: "weights must be greater than 0"}
		}
	}
	w := &Worker{
		handlers: made, layers: slices.Clone(config.Around), hooks: slices.Clone(config.Hooks), logger: config.Logger, base: context.Background(),
		ruled: made.ruled, first: config.Queues[0],
		concurrency: cmp.Or(config.Concurrency, defaultConcurrency),
		prefetch:    config.Prefetch,
		leases:      newLeases(made, config.Lease),
		drain:       max(0, cmp.Or(config.Drain, defaultDrain)),
		wait:        cmp.Or(config.Wait, defaultWait) + made.fill.Wait, // so that few fetches end before their batch is full
		stops:       make(chan struct{}, 2),
		fatal:       make(chan *ConfigurationError, 1),
		draining:    make(chan struct{}),
		news:        make(chan struct{}, 1),
		handed:      make(chan []*delivery),
		health:      config.Health,
		suspects:    map[*delivery]struct{}{},
	}
	if w.logger == nil {
		w.logger = slog.Default()
	}
	w.isolation.patience = min(max(w.drain, shortestIsolation), longestIsolation)
	w.room = sync.NewCond(&w.mu)
	w.capacity = w.concurrency*made.size + config.Prefetch
	w.links = w.makeLinks(config)
	w.scheduler = make(linkScheduler, len(w.links))
	w.deaths = newDeaths(w, w.hooks, w.leases.length, config.Queues)
	return w, nil
}

// makeLinks makes a link for each group of keys that one BPOP can wait for: in a cluster, those of one slot.
func (w *Worker) makeLinks(config WorkerConfig) []*link {
	groups := map[place][]member{}
	var order []place
	isWeighted := config.Weights != nil
	for at, queue := range config.Queues {
		weight := 1.0
		if config.Weights != nil {
			weight = config.Weights[at]
		}
		for _, key := range queue.keys {
			reach := placeOf(queue.client, key)
			if groups[reach] == nil {
				order = append(order, reach)
			}
			groups[reach] = append(groups[reach], member{queue, key, weight})
		}
		isWeighted = isWeighted || queue.shards > 0 // the shards take turns: none is always first
	}
	links := make([]*link, len(order))
	for at, reach := range order {
		links[at] = newLink(w, linkSettings{
			wait: w.wait, handlers: w.handlers, leases: w.leases, isWeighted: isWeighted, isOneOfSeveral: len(order) > 1,
		}, groups[reach])
		links[at].number = at
	}
	return links
}

// Run runs the worker until ctx ends or Stop is called. It then stops fetching, gives handlers up to Drain to end, and
// gives back the rest. It returns nil, at most two seconds after the drain, or a [*ConfigurationError] where waiting
// would not help. A worker runs once.
//
// Programs that end by SIGINT or SIGTERM call [Worker.RunUntilSignal] instead.
//
// Handlers' contexts have the values of ctx, but do not end with it.
func (w *Worker) Run(ctx context.Context) error {
	if w.hasRun.Swap(true) {
		return &ConfigurationError{What: "a worker runs only once: create another one"}
	}
	endHealth, err := w.showHealth()
	if err != nil {
		return err
	}
	defer endHealth()
	defer w.hasEnded.Store(true)
	w.base = context.WithoutCancel(ctx)
	w.suppliers = len(w.links)
	for _, l := range w.links {
		go l.runBatcher()
		go w.supply(l)
	}
	go w.sayRules()
	w.deaths.start(w.base)
	select {
	case <-ctx.Done():
	case <-w.stops:
	case ended := <-w.fatal: // the handlers' work could not be acknowledged
		w.end(0)
		return ended
	}
	w.end(w.drain)
	return nil
}

// Stop makes the worker stop, and returns at once. A second call ends the drain; so does the first one after ctx of
// [Worker.Run] has ended.
func (w *Worker) Stop() {
	select {
	case w.stops <- struct{}{}:
	default:
	}
}

func (w *Worker) end(drain time.Duration) {
	drainUntil := time.Now().Add(drain)
	w.mu.Lock()
	close(w.draining)
	left := w.backlog
	for d := range w.suspects {
		left = append(left, d)
	}
	if w.killer != nil {
		left = append(left, w.killer)
	}
	clear(w.suspects)
	w.backlog, w.killer = nil, nil
	w.inHand -= len(left)
	atWork := w.inHand
	w.room.Broadcast()
	w.mu.Unlock()
	if atWork > 0 && drain > 0 {
		guard.Log(w.logger, slog.LevelInfo, "dq: stopping, waiting for jobs at work", "jobs", atWork, "patience", drain.String())
	}
	for _, d := range left {
		w.gaveBack.Add(1)
		d.link.giveBack(d, returned(d))
	}
	for _, l := range w.links {
		l.wake()
	}
	if !w.waitIdle(drainUntil) {
		for _, l := range w.links {
			l.tellJobs()
		}
		drainUntil = time.Now()
		w.waitIdle(drainUntil.Add(telling / 2))
	}
	w.finish(drainUntil.Add(telling))
	w.deaths.end(drainUntil.Add(telling), w.stops)
	guard.Log(w.logger, slog.LevelInfo, "dq: stopped", "gave back", w.gaveBack.Load())
}

// finish closes the links by that time, and soon after a second stop.
func (w *Worker) finish(by time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), by)
	defer cancel()
	var all sync.WaitGroup
	for _, l := range w.links {
		all.Go(func() { l.finishWithin(ctx) })
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-w.stops:
		time.AfterFunc(hurry, cancel)
		<-ended
	}
}

// waitIdle says whether everything ended before that time, and before a second stop.
func (w *Worker) waitIdle(until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		w.mu.Lock()
		isIdle := w.running == 0 && w.suppliers == 0 && w.reporting == 0
		w.mu.Unlock()
		if isIdle {
			return true
		}
		select {
		case <-w.news:
		case <-timer.C:
			return false
		case <-w.stops:
			return false
		}
	}
}

func (w *Worker) isDraining() bool { return isClosed(w.draining) }

func (w *Worker) ended() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// --- Trouble

func (w *Worker) trouble(err error) {
	if w.isDraining() {
		return
	}
	if end := fatal(err); end != nil {
		select {
		case w.fatal <- end:
		default:
		}
		return
	}
	if text := err.Error(); w.said.Swap(text) != text {
		w.warn("dq: trouble with the server, trying again", "error", text)
	}
}

// off says once that the server forbids a command that a worker can do without.
func (w *Worker) off(command, then string, err error) {
	if _, wasSaid := w.saidOff.LoadOrStore(command+then, true); !wasSaid {
		w.warn("dq: the server refuses "+command+": "+then, "error", err.Error())
	}
}

// givesBack counts jobs that are given back at the stop.
func (w *Worker) givesBack(count int) { w.gaveBack.Add(int64(count)) }

// rest waits for d, or until the worker stops.
func (w *Worker) rest(d time.Duration) {
	select {
	case <-w.draining:
	case <-time.After(d):
	}
}
