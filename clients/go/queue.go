package dq

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// QueueOptions are the options of [NewQueue] and [Open].
type QueueOptions struct {
	// Shards spreads the queue over that many keys, name:{0} to name:{n-1}, by the CRC-32 of the id. 0: one key, the
	// name.
	Shards int
	Codec  Codec // default: JSON
	Hooks  []Hooks
}

// Queue adds jobs; every command of dq is one of its methods. It is safe for concurrent use.
//
// Ids are strings of any bytes. A nil pointer to options means the defaults.
type Queue struct {
	name   string
	shards int
	keys   []string
	codec  Codec
	hooks  []Hooks
	client redis.UniversalClient
	waits  waits
	spare  spare
	denied sync.Map    // commands that the server denies this user, once that was logged
	desk   interface { // of a test, instead of a server; else nil
		answer(words) (any, error)
		lacks(what string) error
	}
}

// Open creates a queue on the server at a URL: redis://user:password@host:6379/0, rediss:// with TLS, or unix://. It
// connects when it is first needed.
func Open(address, name string, options ...QueueOptions) (*Queue, error) {
	parsed, err := redis.ParseURL(address)
	if err != nil {
		// The error's text may show parts of the password.
		return nil, &ConfigurationError{What: "the server's URL cannot be read: redis://user:password@host:6379/0 (or rediss://, unix://), " +
			"with special characters of the password percent-encoded"}
	}
	parsed.MaxRetries = -1 // not every command is safe to send twice
	parsed.ContextTimeoutEnabled = true
	return NewQueue(redis.NewClient(parsed), name, options...), nil
}

// String and GoString leave out the client, whose options may hold a password.
func (q *Queue) String() string { return fmt.Sprintf("Queue(%s)", q.name) }

func (q *Queue) GoString() string { return q.String() }

// NewQueue creates a queue on a go-redis client: [redis.NewClient], [redis.NewClusterClient] or
// [redis.NewFailoverClient].
func NewQueue(client redis.UniversalClient, name string, options ...QueueOptions) *Queue {
	var given QueueOptions
	if len(options) > 0 {
		given = options[0]
	}
	q := &Queue{name: name, shards: given.Shards, codec: given.Codec, hooks: given.Hooks, client: client}
	if q.codec == nil {
		q.codec = JSON
	}
	if q.shards <= 0 {
		q.shards, q.keys = 0, []string{name}
	}
	for n := range q.shards {
		q.keys = append(q.keys, fmt.Sprintf("%s:{%d}", name, n))
	}
	return q
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// Client returns the go-redis client of the queue.
func (q *Queue) Client() redis.UniversalClient { return q.client }

// Close closes the client, and ends all waits.
func (q *Queue) Close() error {
	q.waits.close()
	q.spare.close()
	return q.client.Close()
}

// key returns the shard of an id, by its CRC-32: the same in all languages.
func (q *Queue) key(id string) string {
	if q.shards == 0 {
		return q.keys[0]
	}
	return q.keys[crc32.ChecksumIEEE([]byte(id))%uint32(q.shards)]
}

// newID makes ids that grow with time. An ADD with an explicit id that is sent twice adds one job.
func newID() string {
	var raw [16]byte
	now := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint64(raw[:], now<<16|rand.Uint64()>>48)
	binary.BigEndian.PutUint64(raw[8:], rand.Uint64())
	var text [2 * len(raw)]byte
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

// --- Calls

// do sends one call.
func (q *Queue) do(ctx context.Context, call words) (any, error) {
	if err := call.mistake(); err != nil {
		return nil, err
	}
	if q.desk != nil {
		return q.desk.answer(call)
	}
	return within(ctx, func() (any, error) { return answer(q.client.Do(ctx, call...)) })
}

// within waits for f no longer than ctx lasts. While go-redis waits for a reply, it respects deadlines only if its
// options say so, and never cancellation.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	ended := make(chan result, 1)
	var value T
	go guard.Run(func() (err error) { value, err = f(); return err }, func(err error) { ended <- result{value, err} })
	select {
	case got := <-ended:
		return got.value, got.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// node returns the client of the server that has a key.
func (q *Queue) node(ctx context.Context, key string) (*redis.Client, error) {
	return nodeOf(ctx, q.client, key)
}

// all sends several calls in one round trip, as those to the shards of a queue. It returns the replies up to the first
// error.
func (q *Queue) all(ctx context.Context, calls []words) ([]any, error) {
	if len(calls) == 1 {
		reply, err := q.do(ctx, calls[0])
		return []any{reply}, err
	}
	for _, call := range calls {
		if err := call.mistake(); err != nil {
			return nil, err
		}
	}
	commands, err := within(ctx, func() ([]*redis.Cmd, error) {
		commands := make([]*redis.Cmd, len(calls))
		_, _ = q.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
			for at, call := range calls {
				commands[at] = pipe.Do(ctx, call...)
			}
			return nil
		})
		return commands, nil
	})
	if err != nil {
		return nil, err
	}
	replies := make([]any, len(calls))
	for at, command := range commands {
		reply, err := answer(command)
		if err != nil {
			return replies, err
		}
		replies[at] = reply
	}
	return replies, nil
}

func answer(sent *redis.Cmd) (any, error) {
	reply, err := sent.Result()
	return answered(sent.Args(), reply, err)
}

// answered makes the library's errors of the server's.
func answered(call words, reply any, err error) (any, error) {
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case !resp.IsError(err):
		return reply, err
	case strings.HasPrefix(resp.Said(err), "ERR unknown command"):
		return nil, fatal(err)
	}
	return nil, refused(call, err)
}

// each sends a command to every shard.
func (q *Queue) each(ctx context.Context, command string, rest ...any) ([]any, error) {
	calls := make([]words, len(q.keys))
	for at, key := range q.keys {
		calls[at] = words{command, key}.add(rest...)
	}
	return q.all(ctx, calls)
}

// sum adds up the replies of commands that return a number.
func sum(replies []any, err error) (int, error) {
	total := 0
	for _, reply := range replies {
		total += int(resp.Int(reply))
	}
	return total, err
}

// byShard groups ids by the key that holds them.
func (q *Queue) byShard(ids []string) (keys []string, groups map[string][]string) {
	groups = map[string][]string{}
	for _, id := range ids {
		key := q.key(id)
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], id)
	}
	return keys, groups
}

// countByKey sends a command that takes many ids, and returns how many of them it found.
func (q *Queue) countByKey(ctx context.Context, ids []string, command string, before ...any) (int, error) {
	keys, groups := q.byShard(ids)
	calls := make([]words, len(keys))
	for at, key := range keys {
		calls[at] = words{command, key}.add(before...).add("IDS", len(groups[key])).ids(groups[key])
	}
	if len(calls) == 0 {
		return 0, nil
	}
	return sum(q.all(ctx, calls))
}
