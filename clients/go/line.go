package dq

import (
	"bufio"
	"context"
	"errors"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

const (
	forever        = time.Duration(math.MaxInt64)
	mostSpare      = 16
	longestConnect = 5 * time.Second
	readBytes      = 1 << 16
	lateRead       = 20 * time.Millisecond
	longestParting = 50 * time.Millisecond
)

// connection is the server's number of a connection, and the address of the server that said it: another server has
// other numbers.
type connection struct {
	id   int64
	peer string
}

// line is a connection of go-redis, used without go-redis' protocol: many commands in one write, replies as they come.
// go-redis finds the server (Sentinel, Cluster) and does TLS, AUTH and SELECT. The line connects when it is first
// needed, and again after close. Any goroutine may call part and cut; all else is for one goroutine at a time.
type line struct {
	client  redis.UniversalClient
	key     string
	timeout time.Duration

	known atomic.Pointer[connection] // nil: the server did not say
	peer  string                     // the server's address
	conn  net.Conn
	in    *bufio.Reader
	owner *redis.Client
	since time.Time // since when it has been spare

	mu    sync.Mutex // for cut
	raw   net.Conn
	left  *left
	isCut bool

	isWhole atomic.Bool // connected, with no command that was written in part
}

// left is the connection before this one, on which the server is late: part may still use it until there is a new one.
type left struct {
	raw   net.Conn
	owner *redis.Client
}

// isUp says, after an error, whether anything may have been sent.
func (l *line) isUp() bool { return l.conn != nil }

// open connects, if the line is closed.
func (l *line) open() error {
	if l.conn != nil && !l.isStale() {
		return nil
	}
	return guard.Call(l.connect) // the client's Dialer, OnConnect and credentials may be the user's
}

// isStale closes a line that has been spare for a while, if the server has closed it meanwhile.
func (l *line) isStale() bool {
	if l.since.IsZero() || time.Since(l.since) < time.Second {
		return false
	}
	l.since = time.Time{}
	_ = l.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := l.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	l.close()
	return true
}

func (l *line) send(packed []byte) error {
	if err := l.open(); err != nil {
		return err
	}
	deadline := time.Time{}
	if l.timeout != forever {
		deadline = time.Now().Add(l.timeout)
	}
	if err := l.conn.SetDeadline(deadline); err != nil {
		return err
	}
	l.isWhole.Store(false)
	_, err := l.conn.Write(packed)
	l.isWhole.Store(err == nil)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil // what the server said before it closed (as about too large a result) is still to be read
	}
	return err
}

// read returns the next reply. An error that the server replies is returned as the reply, not as read's error.
func (l *line) read() (any, error) { return resp.Read(l.in, 0) }

func (l *line) ask(commands ...[]string) ([]any, error) {
	var packed []byte
	for _, each := range commands {
		packed = resp.Append(packed, each)
	}
	if err := l.send(packed); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for at := range commands {
		reply, err := l.read()
		if err != nil {
			return nil, err
		}
		replies[at] = reply
	}
	return replies, nil
}

// unblock ends the wait of another connection. It does not where that one does not wait, or is one to another server.
func (l *line) unblock(of *connection) (isDone bool, err error) {
	if err := l.open(); err != nil || l.peer != of.peer {
		return false, err
	}
	replies, err := l.ask([]string{"DQ.UNBLOCK", strconv.FormatInt(of.id, 10)})
	if said := resp.FirstError(replies); err == nil && said != nil {
		err = said
	}
	return err == nil && replies[0] == int64(1), err
}

// order sends commands whose replies do not matter, except for errors.
func (l *line) order(commands [][]string) error {
	if len(commands) == 0 {
		return nil
	}
	replies, err := l.ask(commands...)
	if said := resp.FirstError(replies); err == nil && said != nil {
		err = said
	}
	return err
}

func (l *line) connect() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*longestConnect)
	defer cancel()
	options, err := l.options(ctx)
	if err != nil {
		return err
	}
	dial := options.Dialer
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			l.keep(conn)
		}
		return conn, err
	}
	owner := redis.NewClient(options)
	id, err := owner.Conn().ClientID(ctx).Result() // the connection is never returned to the pool, so go-redis does not use it
	if err != nil && !mayNotAskID(err) {
		_ = owner.Close()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peer = l.raw.RemoteAddr().String()
	if err == nil {
		l.known.Store(&connection{id, l.peer})
	}
	l.dropLeft()
	l.conn, l.in, l.owner = l.raw, bufio.NewReaderSize(patient{l.raw}, readBytes), owner
	l.isWhole.Store(true)
	return nil
}

// mayNotAskID says whether CLIENT ID is forbidden. Then a connection that waits is closed to end its wait.
func mayNotAskID(err error) bool {
	return trouble.IsForbidden(err) && strings.Contains(err.Error(), "client")
}

func (l *line) keep(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raw = conn
	if l.isCut {
		_ = conn.Close()
	}
}

// options returns the client's options for one connection of RESP2, in which the server never sends unasked.
func (l *line) options(ctx context.Context) (*redis.Options, error) {
	node, err := nodeOf(ctx, l.client, l.key)
	if err != nil {
		return nil, err
	}
	options := *node.Options()
	patience := min(l.timeout, longestConnect)
	options.Protocol = 2
	options.PoolSize, options.MinIdleConns, options.MaxRetries = 1, 0, -1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = patience, patience, patience
	return &options, nil
}

// patient reads what had arrived by its deadline, even if this program was stopped meanwhile: by a SIGSTOP, or with its
// whole machine.
type patient struct{ net.Conn }

func (p patient) Read(into []byte) (int, error) {
	size, err := p.Conn.Read(into)
	if errors.Is(err, os.ErrDeadlineExceeded) && p.SetReadDeadline(time.Now().Add(lateRead)) == nil {
		return p.Conn.Read(into)
	}
	return size, err
}

// part writes without waiting for replies, if the line is connected, or the server is late on it; it is closed then. A
// server that stands still reads this when it goes on.
func (l *line) part(packed []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.raw
	if l.left != nil {
		to = l.left.raw
	}
	if len(packed) > 0 && l.mayPartLocked() && to.SetWriteDeadline(time.Now().Add(longestParting)) == nil {
		_, _ = to.Write(packed)
	}
}

func (l *line) mayPart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mayPartLocked()
}

func (l *line) mayPartLocked() bool { return l.left != nil || l.isWhole.Load() }

// fail closes the line after an error, except for part if the server is late.
func (l *line) fail(err error) {
	if l.isWhole.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		l.mu.Lock()
		l.dropLeft()
		l.left = &left{l.raw, l.owner}
		l.mu.Unlock()
		l.conn, l.owner = nil, nil
	}
	l.close()
}

// dropLeft is called with mu.
func (l *line) dropLeft() {
	if l.left != nil {
		_ = l.left.raw.Close()
		_ = l.left.owner.Close()
		l.left = nil
	}
}

func (l *line) close() {
	l.known.Store(nil)
	l.isWhole.Store(false)
	if l.conn != nil {
		_ = l.conn.Close()
		_ = l.owner.Close()
	}
	l.conn, l.in, l.owner = nil, nil, nil
}

// drop has whoever reads from the line get an error, and then connect again.
func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raw != nil {
		_ = l.raw.Close()
	}
}

// cut closes the line for good: a goroutine that reads from it gets an error.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	l.dropLeft()
	if l.raw != nil {
		_ = l.raw.Close()
	}
}

// spare has connections that no call uses at the moment.
type spare struct {
	mu       sync.Mutex
	lines    []*line
	isClosed bool
}

func (s *spare) take(client redis.UniversalClient, key string, timeout time.Duration) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := &line{client: client, key: key}
	if last := len(s.lines) - 1; last >= 0 {
		taken, s.lines = s.lines[last], s.lines[:last]
	}
	if placeOf(client, taken.key) != placeOf(client, key) {
		taken.close()
	}
	taken.key, taken.timeout = key, timeout
	return taken
}

// put keeps a line for others, unless its call failed.
func (s *spare) put(l *line, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.isClosed || len(s.lines) >= mostSpare {
		l.close()
		return
	}
	l.since = time.Now()
	s.lines = append(s.lines, l)
}

func (s *spare) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	for _, each := range s.lines {
		each.close()
	}
	s.lines = nil
}

func nodeOf(ctx context.Context, client redis.UniversalClient, key string) (*redis.Client, error) {
	switch client := client.(type) {
	case *redis.Client:
		return client, nil
	case *redis.ClusterClient:
		// A keyed command first: it follows redirections, so the client learns which node has a slot that moved.
		if err := client.Do(ctx, "DQ.LEN", key).Err(); err != nil {
			return nil, err
		}
		return client.MasterForKey(ctx, key)
	}
	return nil, &ConfigurationError{What: "dq needs a *redis.Client or a *redis.ClusterClient"}
}
