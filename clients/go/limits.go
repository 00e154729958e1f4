package dq

import "time"

const (
	defaultConcurrency = 10
	defaultDrain       = 25 * time.Second
	defaultWait        = 5 * time.Second // a BPOP is then sent again, so a connection that hangs is noticed
	longestAnswer      = 5 * time.Second
	shortestAnswer     = 200 * time.Millisecond
)

const (
	slack      = 5 * time.Second // how much longer than its wait a BPOP may take, on a slow network
	gatherFor  = time.Millisecond
	gatherUpTo = 100
	tellAtOnce = 500         // outcomes in one write, after which a heartbeat may be due
	telling    = time.Second // after the drain: half of it for handlers that were told to end, half for the server
	hurry      = telling / 2 // after a second stop

	partingBytes = 1 << 20
	noWait       = time.Millisecond

	unblocked    = 5 * time.Millisecond  // after which a fetch that was ended has been read
	unblockAgain = 50 * time.Millisecond // after which the end of a wait is asked for again that has not begun yet
)

const (
	keepResult  = time.Minute // how long AddAndWait keeps a job
	betweenAsks = time.Millisecond
)
