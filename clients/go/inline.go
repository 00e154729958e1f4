package dq

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// NewInlineQueue makes a queue for tests, without a server: [Queue.Add] runs the handler at once, whatever the delay,
// and returns its error. Other commands are errors.
func NewInlineQueue(name string, all ...Handler) (*Queue, error) {
	made, err := newHandlers(all)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: "nowhere:0", MaxRetries: -1})
	client.AddHook(inline{made})
	return NewQueue(client, name), nil
}

// inline answers in place of a server.
type inline struct{ handlers *handlers }

func (i inline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (i inline) ProcessHook(redis.ProcessHook) redis.ProcessHook { return i.process }

func (i inline) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, command := range commands {
			if err := i.process(ctx, command); err != nil {
				return err
			}
		}
		return nil
	}
}

func (i inline) process(ctx context.Context, command redis.Cmder) error {
	id, err := i.run(ctx, command.Args())
	if err != nil {
		command.SetErr(err)
		return err
	}
	command.(*redis.Cmd).SetVal(id)
	return nil
}

func (i inline) run(ctx context.Context, words []any) (string, error) {
	if words[0] != "DQ.ADD" {
		return "", fmt.Errorf("dq: %v needs a server: see package dqtest", words[0])
	}
	id := asText(words[2])
	if id == "*" {
		id = newID()
	}
	now := time.Now()
	d := &delivery{
		jobKey: jobKey{asText(words[1]), id}, token: "1", attempt: 1, payload: asBytes(words[3]), codec: JSON,
	}
	d.handler = i.handlers.choose(d)
	d.job = jobOf(d, now.Add(serverTTR), now)
	if d.handler == nil {
		return "", fmt.Errorf("dq: no handler for jobs of kind %q", d.job.Kind())
	}
	_, err := d.verdict(door(func() error { return call(ctx, []*delivery{d}) }))
	return id, err
}
