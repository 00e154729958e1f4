// Package dqtest is for tests of programs that use dq: a server with the module, whose clock stands still until the
// test moves it.
//
//	server := dqtest.Start(t)
//	queue := server.Queue(t, "orders")
//	server.Clock.Advance(30 * 24 * time.Hour)
//	handled, err := worker.Drain(ctx)
//
// A handler alone is tested without a server by [dq.TestJob].
package dqtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

const patience = 30 * time.Second

// Server is a server of the test's own, on a socket in a folder of its own. It ends with the test.
type Server struct {
	URL    string
	Client *redis.Client
	Clock  *Clock
}

// Start starts a server with the module. The program is the one that the environment variable DQ_SERVER names, else
// valkey-server or redis-server; DQ_MODULE names the module. Without that, the program dq says both: that of the variable
// DQ_PROGRAM, or of the PATH.
func Start(t testing.TB) *Server {
	t.Helper()
	folder, err := os.MkdirTemp("", "dq-test-") // its path is short, as a socket's must be
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	log, err := os.Create(filepath.Join(folder, "log"))
	must(t, err)
	program, module := files(t)
	process := exec.Command(program, "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "",
		"--loadmodule", module, "test-clock", "yes")
	process.Stdout, process.Stderr = log, log
	must(t, process.Start())
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	t.Cleanup(func() { _ = process.Process.Kill(); <-ended; _ = log.Close() })

	server := &Server{URL: "unix://" + socket, Client: redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})}
	t.Cleanup(func() { _ = server.Client.Close() })
	server.Clock = &Clock{t, server.Client}
	for end := time.Now().Add(patience); server.Client.Ping(context.Background()).Err() != nil; {
		select {
		case <-ended:
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("dqtest: the server does not start:\n%s", said)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatal("dqtest: the server does not answer")
		}
	}
	return server
}

// Queue creates a queue on the server.
func (s *Server) Queue(t testing.TB, name string) *dq.Queue {
	t.Helper()
	queue, err := dq.Open(s.URL, name)
	must(t, err)
	t.Cleanup(func() { _ = queue.Close() })
	return queue
}

// Run runs a worker until the test ends. For tests that need no clock, [dq.Worker.Drain] is simpler.
func (s *Server) Run(t testing.TB, config dq.WorkerConfig) *dq.Worker {
	t.Helper()
	worker, err := dq.NewWorker(config)
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(context.Background()) }()
	t.Cleanup(func() {
		worker.Stop()
		if err := <-ended; err != nil {
			t.Errorf("dqtest: the worker ended: %v", err)
		}
	})
	return worker
}

// files returns the server program and the module.
func files(t testing.TB) (program, module string) {
	t.Helper()
	program, module = os.Getenv("DQ_SERVER"), os.Getenv("DQ_MODULE")
	if module == "" {
		server, packed := packedFiles(t)
		module = packed
		if program == "" {
			program = server
		}
	}
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Fatal("dqtest: no valkey-server or redis-server in the PATH: set DQ_SERVER")
	}
	module, err := filepath.Abs(module)
	must(t, err)
	if found, err := os.Stat(module); err != nil || found.IsDir() {
		t.Fatal("dqtest: set DQ_MODULE to the path of libdq.so")
	}
	return program, module
}

// packedFiles returns those in the program dq.
func packedFiles(t testing.TB) (server, module string) {
	t.Helper()
	program := os.Getenv("DQ_PROGRAM")
	if program == "" {
		program = "dq"
	}
	said, err := exec.Command(program, "dev", "--which").Output()
	if lines := strings.Split(string(said), "\n"); err == nil && len(lines) > 1 {
		return lines[0], lines[1]
	}
	t.Fatalf("dqtest: set DQ_MODULE to the path of libdq.so, or have the program dq in the PATH (%v)", err)
	return "", ""
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("dqtest: %v", err)
	}
}

// Clock is the server's clock. It stands still, begins at the real time, and never goes back. When a method returns,
// everything that became due on the way has happened.
type Clock struct {
	t      testing.TB
	client *redis.Client
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time { c.t.Helper(); return c.ask("GET") }

// Advance moves the clock by d, rounded up to milliseconds, and returns its time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.t.Helper()
	return c.ask("ADVANCE", (d + time.Millisecond - 1).Milliseconds())
}

// Set moves the clock to an instant in its future, and returns its time.
func (c *Clock) Set(at time.Time) time.Time { c.t.Helper(); return c.ask("SET", at.UnixMilli()) }

// Next moves the clock to the next instant at which anything happens, and returns it. False: nothing will happen.
func (c *Clock) Next() (time.Time, bool) {
	c.t.Helper()
	now := c.ask("NEXT")
	return now, !now.IsZero()
}

func (c *Clock) ask(words ...any) time.Time {
	c.t.Helper()
	reply, err := c.client.Do(context.Background(), append([]any{"DQ.CLOCK"}, words...)...).Int64()
	if errors.Is(err, redis.Nil) {
		return time.Time{}
	}
	must(c.t, err)
	return time.UnixMilli(reply)
}
