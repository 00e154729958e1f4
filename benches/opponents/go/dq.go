package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

const queue = "jobs"

// dq through go-redis: one job at a time.
type dq struct{ server *redis.Client }

func newDq(address string) *dq {
	const waitForEver = -1
	return &dq{redis.NewClient(&redis.Options{Addr: address, ReadTimeout: waitForEver})}
}

func words(j job) []any {
	words := []any{"DQ.ADD", queue, j.number, j.payload}
	if j.dueMs != 0 {
		words = append(words, "AT", j.dueMs)
	}
	return words
}

func (d *dq) add(j job) {
	must(d.server.Do(context.Background(), words(j)...).Err())
}

func (d *dq) addMany() func([]job) {
	return func(jobs []job) {
		_, err := d.server.Pipelined(context.Background(), func(pipeline redis.Pipeliner) error {
			for _, j := range jobs {
				pipeline.Do(context.Background(), words(j)...)
			}
			return nil
		})
		must(err)
	}
}

func (d *dq) work(handle func(string) bool, isReady func()) {
	must(d.server.Ping(context.Background()).Err())
	isReady()
	for isOver := false; !isOver; {
		reply, err := d.server.Do(context.Background(), "DQ.BPOP", queue, 0).Slice()
		must(err)
		id, payload, token := reply[1], reply[2].(string), reply[3]
		isOver = handle(payload)
		must(d.server.Do(context.Background(), "DQ.ACK", queue, "WITHTOKENS", id, token).Err())
	}
}
