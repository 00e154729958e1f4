package dq

import (
	"context"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// Signal sends a signal to a job, with a value that the queue's codec encodes (nil: none). [WaitSignal] returns the
// value, also if the handler gets there only later. False: the signal was sent before, and its first value stays. The
// error is [ErrNotFound] if the job does not exist or has ended.
func (q *Queue) Signal(ctx context.Context, id, name string, value any) (bool, error) {
	if err := checkName(name, ""); err != nil {
		return false, err
	}
	call := words{"DQ.SIGNAL", q.key(id), id, name}
	if value != nil {
		raw, err := encoded(q.codec, value)
		if err != nil {
			return false, fmt.Errorf("dq: the value of signal %q cannot be encoded: %w", name, err)
		}
		call = call.add(raw)
	}
	reply, err := found(q.do(ctx, call))
	return resp.Int(reply) == 1, err
}

// Step keeps values, by names, with a job that was popped by hand, as the function [Step] does. It returns false if the
// token is not the job's current one.
func (q *Queue) Step(ctx context.Context, id, token string, steps map[string][]byte) (bool, error) {
	call := words{"DQ.STEP", q.key(id), id, token}
	for name, value := range steps {
		call = call.add(name, value)
	}
	reply, err := q.do(ctx, call)
	return resp.Int(reply) == 1, err
}

// The step is "begun" before the user's script and "ended" after it. So a script that fails leaves no finished step. If
// the reply of one that succeeded is lost, and the client sends it again, it finds "ended" and does not run twice.
const (
	onceEnded = "ended"
	onceStart = `
local function ended()
  local job = redis.call('DQ.GET', KEYS[1], ARGV[1])
  for n = 1, #job, 2 do
    if job[n] == 'steps' then
      for m = 1, #job[n + 1], 2 do
        if job[n + 1][m] == ARGV[3] then return job[n + 1][m + 1] == 'ended' end
      end
    end
  end
end
if not redis.call('DQ.TOUCH', KEYS[1], ARGV[1], 'TOKEN', ARGV[2]) then return -1 end
if redis.call('DQ.SIGNAL', KEYS[1], ARGV[1], ARGV[3], 'begun') == 0 and ended() then return 0 end
local function work(KEYS, ARGV)
`
	onceEnd = `
end
local said = work({unpack(KEYS, 2)}, {unpack(ARGV, 4)})
if type(said) == 'table' and said.err then return said end
redis.call('DQ.STEP', KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'ended')
return 1
`
)

// Once runs a Lua script on keys of this server (in a cluster: of the queue's slot) exactly once in the life of the
// job. The script's writes and its step, under the given name, take effect together. True: the script ran now; false:
// it ran in an earlier attempt. The error is the script's, which should fail before it writes, or [ErrLost].
func (j *Job) Once(ctx context.Context, name, script string, keys []string, args ...any) (bool, error) {
	d, value, _, err := j.at(name, "")
	if err != nil || string(value) == onceEnded {
		return false, err
	}
	for at, each := range args {
		if args[at], err = argument(each); err != nil {
			return false, err
		}
	}
	call := words{"EVAL", onceStart + strings.TrimSpace(script) + onceEnd, 1 + len(keys), d.queue}.ids(keys)
	reply, err := d.ask(ctx, call.add(d.id, d.token, name).add(args...))
	if err == nil && resp.Int(reply) < 0 {
		err = d.lost()
	}
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps.keep(name, []byte(onceEnded))
	return resp.Int(reply) == 1, nil
}

// argument is an argument of a script as it is sent. What has no text is refused.
func argument(given any) (any, error) {
	switch given := given.(type) {
	case string, []byte, time.Time:
		return given, nil
	case encoding.BinaryMarshaler:
		var raw []byte
		err := guard.Call(func() (failure error) { raw, failure = given.MarshalBinary(); return failure })
		return raw, err
	}
	switch v := reflect.ValueOf(given); {
	case v.Kind() == reflect.Bool, v.Kind() == reflect.String, v.CanInt(), v.CanUint(), v.CanFloat():
		return guard.Plain(given), nil
	}
	return nil, &ConfigurationError{What: fmt.Sprintf("an argument of a script is a text, bytes or a number, not a %T", given)}
}
