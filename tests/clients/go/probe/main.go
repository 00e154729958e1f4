// What go-redis makes of dq.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

type list = []interface{}

func address(check string) string {
	return "127.0.0.1:" + os.Getenv("PORT_"+strings.ToUpper(check))
}

func connect(check string, change ...func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: address(check), ReadTimeout: 20 * time.Second}
	for _, change := range change {
		change(options)
	}
	return redis.NewClient(options)
}

// The reply to a command; nil for nil.
func ask(db redis.UniversalClient, command ...interface{}) interface{} {
	reply, err := db.Do(ctx, command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(fmt.Sprintf("%v: %v", command, err))
	}
	return reply
}

func equal(is, expected interface{}) {
	if !reflect.DeepEqual(is, expected) {
		panic(fmt.Sprintf("%#v, not %#v", is, expected))
	}
}

func empty(db redis.UniversalClient, queue string) {
	equal(ask(db, "DQ.POP", queue), nil)
	equal(ask(db, "DQ.POP", queue, "COUNT", 5), list{})
}

func resp2() {
	db := connect("resp2", func(o *redis.Options) { o.Protocol = 2 })
	equal(ask(db, "DQ.ADD", "resp2", "a", "x", "DELAY", 60_000), "a")
	job := ask(db, "DQ.GET", "resp2", "a").(list)
	var state any
	for n := 0; n < len(job); n += 2 {
		if job[n] == "state" {
			state = job[n+1]
		}
	}
	equal(state, "delayed")
	empty(db, "resp2")
}

func resp3() {
	db := connect("resp3") // the default
	equal(ask(db, "DQ.ADD", "resp3", "a", "x", "DELAY", 60_000), "a")
	job := ask(db, "DQ.GET", "resp3", "a").(map[interface{}]interface{})
	equal(job["state"], "delayed")
	equal(job["token"], nil)
	equal(job["backoff"], list{})
	empty(db, "resp3")
}

func pipeline() {
	pipe := connect("pipeline").Pipeline()
	for n := 0; n < 100; n++ {
		pipe.Do(ctx, "DQ.ADD", "pipeline", fmt.Sprintf("job-%d", n), n)
	}
	count := pipe.Do(ctx, "DQ.LEN", "pipeline")
	jobs := pipe.Do(ctx, "DQ.POP", "pipeline", "COUNT", 100)
	if _, err := pipe.Exec(ctx); err != nil {
		panic(err)
	}
	equal(count.Val(), int64(100))
	for n, job := range jobs.Val().(list) {
		equal(job.(list)[1], strconv.Itoa(n))
	}
}

func multi() {
	tx := connect("multi").TxPipeline()
	for n := 0; n < 7; n++ {
		tx.Do(ctx, "DQ.ADD", "multi", fmt.Sprintf("job-%d", n), n)
	}
	count := tx.Do(ctx, "DQ.LEN", "multi")
	job := tx.Do(ctx, "DQ.BPOP", "multi", 0)
	acked := tx.Do(ctx, "DQ.ACK", "multi", "job-0")
	none := tx.Do(ctx, "DQ.BPOP", "nothing", 0) // does not wait in a transaction
	_, err := tx.Exec(ctx)
	equal(err, redis.Nil)
	equal(count.Val(), int64(7))
	equal(job.Val().(list)[:3], list{"multi", "job-0", "0"})
	equal(acked.Val(), int64(1))
	equal(none.Err(), redis.Nil)
}

func binary() {
	db := connect("binary")
	id, payload := "\x00\xff\r\n", "\x00\xff\xc3\x28"
	for n := 0; n < 256; n++ {
		payload += string([]byte{byte(n)})
	}
	equal(ask(db, "DQ.ADD", "binary", []byte(id), []byte(payload)), id)
	job := ask(db, "DQ.BPOP", "binary", 1).(list)
	equal(job[1:3], list{id, payload})
	equal(ask(db, "DQ.ACK", "binary", "WITHTOKENS", id, job[3]), int64(1))
}

func tokens() {
	db := connect("tokens")
	ask(db, "DQ.ADD", "tokens", "a", "x")
	token := ask(db, "DQ.POP", "tokens").(list)[2].(string)
	number, err := strconv.ParseUint(token, 10, 64)
	if err != nil || number <= 1<<53 {
		panic(token)
	}
	equal(ask(db, "DQ.ACK", "tokens", "WITHTOKENS", "a", number+1), int64(0))
	equal(ask(db, "DQ.ACK", "tokens", "WITHTOKENS", "a", token), int64(1))
}

func timeout() {
	waits := list{"DQ.BPOP", "timeout", "2.5"}
	settings := redis.NewClient(&redis.Options{}).Options()
	equal(settings.ReadTimeout, 3*time.Second)
	equal(settings.MaxRetries, 3)
	// Longer: a job comes when it is due, and nothing is nothing.
	db := connect("timeout")
	ask(db, "DQ.ADD", "timeout", "a", "x", "DELAY", 1500)
	equal(ask(db, waits...).(list)[1:3], list{"a", "x"})
	equal(ask(db, waits...), nil)
	// Shorter than the wait: it is cut off, and sent again on another connection.
	received := func() int {
		field, _ := db.InfoMap(ctx, "stats").Result()
		count, _ := strconv.Atoi(field["Stats"]["total_connections_received"])
		return count
	}
	before := received()
	short := connect("timeout", func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = time.Second, 1 })
	err := short.Do(ctx, waits...).Err()
	var cut net.Error
	if !errors.As(err, &cut) || !cut.Timeout() {
		panic(fmt.Sprintf("not cut off: %v", err))
	}
	equal(received()-before, 2)
}

func cluster() {
	db := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{address("cluster")}, ReadTimeout: 20 * time.Second,
	})
	for n := 0; n < 30; n++ {
		queue := fmt.Sprintf("queue-%d", n)
		equal(ask(db, "DQ.ADD", queue, "a", n), "a")
		job := ask(db, "DQ.BPOP", "{"+queue+"}:urgent", queue, 1).(list)
		equal(job[:3], list{queue, "a", strconv.Itoa(n)})
		equal(ask(db, "DQ.ACK", queue, "WITHTOKENS", "a", job[3]), int64(1))
		equal(ask(db, "DQ.POP", queue), nil)
	}
}

func try(name string, check func()) (held bool) {
	defer func() {
		if why := recover(); why != nil {
			fmt.Printf("FAILED %s: %v\n", name, why)
		}
	}()
	check()
	fmt.Println("ok", name)
	return true
}

func main() {
	all := try("resp2", resp2)
	all = try("resp3", resp3) && all
	all = try("pipeline", pipeline) && all
	all = try("multi", multi) && all
	all = try("binary", binary) && all
	all = try("tokens", tokens) && all
	all = try("timeout", timeout) && all
	all = try("cluster", cluster) && all
	if !all {
		os.Exit(1)
	}
}
