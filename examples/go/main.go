// A producer and a worker with go-redis.
//
//	go run . add welcome:7 "Dear Ann" 5000    # a job, due in five seconds
//	go run . work                             # until Ctrl-C or SIGTERM
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	queue = "mails"
	wait  = 1 * time.Second // how long one BPOP waits
)

var lease = 30 * time.Second // a worker that is silent for so long loses its job

var ctx = context.Background()

type job struct {
	id, payload, token string
	attempt            int64
}

// The read timeout must be longer than BPOP's. Without retries it is the longest that a stop takes, whatever the
// server does.
func connect() *redis.Client {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		url = "redis://127.0.0.1:6379"
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		log.Fatal(err)
	}
	options.ReadTimeout = wait + 2*time.Second
	options.DialTimeout = 2 * time.Second
	options.MaxRetries = -1
	return redis.NewClient(options)
}

// With an id of its own a job that is sent twice is there once.
func add(db *redis.Client, id, text, delayMs string) error {
	err := db.Do(ctx, "DQ.ADD", queue, id, text, "DELAY", delayMs,
		"ATTEMPTS", 5, "BACKOFF", 2, 1000, 60_000).Err()
	switch {
	case errors.Is(err, redis.Nil):
		fmt.Println("there is already a job", id)
	case err != nil:
		return err
	default:
		fmt.Println("added", id)
	}
	return nil
}

// The work itself. Here it only fails once, or takes longer than a lease, where the text says so.
func send(text string, attempt int64) error {
	if strings.HasPrefix(text, "flaky") && attempt == 1 {
		return errors.New("mail server is away")
	}
	if strings.HasPrefix(text, "slow") {
		time.Sleep(lease * 3 / 2)
	}
	return nil
}

// Begins the lease anew, until the work is done or the job is no longer ours.
func beat(db *redis.Client, j job, done <-chan struct{}) {
	ticks := time.NewTicker(lease / 3)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
		}
		err := db.Do(ctx, "DQ.TOUCH", queue, j.id, "TOKEN", j.token).Err()
		if errors.Is(err, redis.Nil) {
			return
		} else if err != nil {
			fmt.Println("no heartbeat:", err)
		}
	}
}

func handle(db *redis.Client, j job) error {
	done := make(chan struct{})
	go beat(db, j, done)
	failure := send(j.payload, j.attempt)
	close(done)
	if failure != nil {
		state, err := db.Do(ctx, "DQ.NACK", queue, j.id, "TOKEN", j.token).Text()
		if errors.Is(err, redis.Nil) {
			state, err = "lost", nil
		}
		fmt.Printf("failed %s (attempt %d): %v; now %s\n", j.id, j.attempt, failure, state)
		return err
	}
	acked, err := db.Do(ctx, "DQ.ACK", queue, "WITHTOKENS", "IDS", 1, j.id, j.token).Int64Slice()
	if err == nil && acked[0] == 1 {
		fmt.Printf("done %s (attempt %d)\n", j.id, j.attempt)
	} else if err == nil {
		fmt.Printf("lost %s: another worker may have it\n", j.id)
	}
	return err
}

// Waits for a job and does it; redis.Nil if none came.
func next(db *redis.Client) error {
	reply, err := db.Do(ctx, "DQ.BPOP", queue, wait.Seconds(), "TTR", lease.Milliseconds()).Slice()
	if err != nil {
		return err
	}
	// Queue, id, payload, token, attempt, deadline. A string holds any bytes.
	return handle(db, job{reply[1].(string), reply[2].(string), reply[3].(string), reply[4].(int64)})
}

func work(db *redis.Client) {
	stopping, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	// The commands do not get that context: cancelling a BPOP may cost a job its lease.
	for stopping.Err() == nil {
		if err := next(db); err != nil && !errors.Is(err, redis.Nil) {
			// Whatever we had is delivered again when its lease ends.
			fmt.Println("trouble:", err)
			time.Sleep(time.Second / 2)
		}
	}
	fmt.Println("stopped")
}

func main() {
	if ms, err := strconv.Atoi(os.Getenv("LEASE_MS")); err == nil {
		lease = time.Duration(ms) * time.Millisecond
	}
	db := connect()
	defer db.Close()
	switch args := os.Args[1:]; {
	case len(args) == 4 && args[0] == "add":
		if err := add(db, args[1], args[2], args[3]); err != nil {
			log.Fatal(err)
		}
	case len(args) == 1 && args[0] == "work":
		work(db)
	default:
		log.Fatal("usage: go run . add ID TEXT DELAY_MS | work")
	}
}
