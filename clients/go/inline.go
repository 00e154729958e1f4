package dq

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
)

const mostRuns = 1000 // attempts of one job: a handler that sleeps under a new name each time would never end

// NewInlineQueue creates a queue for tests, without a server. [Queue.Add] runs the handler at once, whatever the delay,
// and returns its error. A handler that sleeps goes on at once; one that waits for a signal goes on in [Queue.Signal].
// [Result] and [Wait] find the results, as long as the queue exists. Other commands return errors.
func NewInlineQueue(name string, all ...Handler) (*Queue, error) {
	made, err := newHandlers(all)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: "nowhere:0", MaxRetries: -1})
	q := NewQueue(client, name)
	i := &inline{queue: q, handlers: made, jobs: map[string]*inlineJob{}}
	q.inline = i
	client.AddHook(i)
	return q, nil
}

// inline is a go-redis hook that answers in place of a server.
type inline struct {
	queue    *Queue
	handlers *handlers
	mu       sync.Mutex
	jobs     map[string]*inlineJob
}

// inlineJob is a job, also after its end.
type inlineJob struct {
	payload  []byte
	steps    map[string][]byte
	results  []ending
	progress string
	awaits   string // the signal that it waits for
	end      ending // its outcome is "" until then
}

func (i *inline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (i *inline) ProcessHook(redis.ProcessHook) redis.ProcessHook { return i.process }

func (i *inline) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, command := range commands {
			if name := command.Name(); name == "multi" || name == "exec" {
				continue
			}
			if err := i.process(ctx, command); err != nil {
				return err
			}
		}
		return nil
	}
}

func (i *inline) process(ctx context.Context, command redis.Cmder) error {
	reply, err := i.answer(ctx, words(command.Args()).texts())
	if err == nil && reply == nil {
		err = redis.Nil
	}
	if err != nil {
		command.SetErr(err)
		return err
	}
	command.(*redis.Cmd).SetVal(reply)
	return nil
}

func (i *inline) answer(ctx context.Context, words []string) (any, error) {
	switch words[0] {
	case "DQ.ADD":
		return i.add(ctx, words[2], words[3], words[4:])
	case "DQ.MADD":
		var ids []any
		count, _ := strconv.Atoi(words[2])
		for n := range count {
			id, err := i.add(ctx, words[3+2*n], words[4+2*n], nil)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	case "DQ.STEP", "DQ.TOUCH":
		i.mu.Lock()
		defer i.mu.Unlock()
		job := i.jobs[words[2]]
		if job == nil {
			return nil, nil
		}
		if words[0] == "DQ.STEP" {
			job.steps[words[4]] = []byte(words[5])
		} else {
			job.progress = words[len(words)-1]
		}
		return int64(1), nil
	case "DQ.SIGNAL":
		return i.signal(ctx, words[2], words[3], append(words, "")[4])
	case "DQ.GET":
		return i.get(words[2]), nil
	}
	return nil, fmt.Errorf("dq: %s needs a server: see package dqtest", words[0])
}

func (i *inline) add(ctx context.Context, id, payload string, options []string) (any, error) {
	job := &inlineJob{payload: []byte(payload), steps: map[string][]byte{}}
	if isThere, err := i.enter(id, job, options); isThere || err != nil {
		return nil, err
	}
	return id, i.run(ctx, id, job)
}

func (i *inline) enter(id string, job *inlineJob, options []string) (isThere bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if before := i.jobs[id]; before != nil && before.end.outcome == "" {
		return true, nil
	}
	for at := 1; at < len(options); at++ { // a label may read AFTER, too
		if _, noCount := strconv.Atoi(options[at]); noCount != nil || options[at-1] != "AFTER" {
			continue
		}
		if job.results, err = i.endings(options[at:]); err != nil {
			return false, err
		}
		break
	}
	i.jobs[id] = job
	return false, nil
}

// endings returns how jobs ended. Its arguments are their number and their ids, as after AFTER. It is called with mu.
func (i *inline) endings(words []string) (found []ending, err error) {
	count, _ := strconv.Atoi(words[0])
	for _, id := range words[1 : 1+count] {
		other := i.jobs[id]
		if other == nil || other.end.outcome == "" {
			return nil, fmt.Errorf("dq: job %s has not ended: what comes after it waits for ever", id)
		}
		found = append(found, other.end)
	}
	return found, nil
}

func (i *inline) signal(ctx context.Context, id, name, value string) (any, error) {
	i.mu.Lock()
	job := i.jobs[id]
	if job == nil || job.end.outcome != "" {
		i.mu.Unlock()
		return nil, nil
	}
	_, isSet := job.steps[name]
	mustRun := !isSet && job.awaits == name
	if !isSet {
		job.steps[name] = []byte(value)
	}
	i.mu.Unlock()
	if isSet {
		return int64(0), nil
	}
	if mustRun {
		return int64(1), i.run(ctx, id, job)
	}
	return int64(1), nil
}

func (i *inline) get(id string) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	job := i.jobs[id]
	if job == nil {
		return nil
	}
	fields := map[any]any{"id": id, "payload": string(job.payload), "state": string(Delayed), "progress": job.progress}
	steps := map[any]any{}
	for name, value := range job.steps {
		steps[name] = string(value)
	}
	fields["steps"] = steps
	switch job.end.outcome {
	case OutcomeDone:
		fields["state"] = string(Done)
		if job.end.value != nil {
			fields["result"] = string(job.end.value)
		}
	case OutcomeDead:
		fields["state"], fields["reason"] = string(Dead), string(job.end.value)
	}
	return fields
}

// run calls the handler until the job ends, or waits for a signal.
func (i *inline) run(ctx context.Context, id string, job *inlineJob) error {
	for attempt := range mostRuns {
		v, result, d, err := i.attempt(ctx, id, job, attempt+1)
		if d == nil {
			return err
		}
		if v.way != suspended {
			i.ends(id, job, v, result)
			return err
		}
		if goesOn, err := i.goOn(ctx, job, d.waits()); err != nil || !goesOn {
			return err
		}
	}
	return fmt.Errorf("dq: job %s waits again and again", id)
}

func (i *inline) attempt(ctx context.Context, id string, job *inlineJob, attempt int) (verdict, []byte, *delivery, error) {
	i.mu.Lock()
	job.awaits = ""
	row := row{id: id, payload: job.payload, token: "1", attempt: attempt, results: job.results, steps: map[string][]byte{}}
	for name, value := range job.steps {
		row.steps[name] = value
	}
	i.mu.Unlock()
	d := deliveryOf(i.queue, i.queue.keys[0], row)
	now := time.Now()
	d.ctx = ctx
	d.handler = i.handlers.choose(d.opened)
	d.job = jobOf(d, now.Add(serverTTR), now)
	if d.handler == nil {
		return verdict{}, nil, nil, fmt.Errorf("dq: no handler for jobs of kind %q", d.job.Kind())
	}
	v, result, err := d.verdict(guard.Call(func() error { return call(ctx, []*delivery{d}) }))
	return v, result, d, err
}

func (i *inline) ends(id string, job *inlineJob, v verdict, result []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	job.end = ending{id, OutcomeDone, result}
	if v.way != succeeded {
		job.end = ending{id, OutcomeDead, []byte(v.reason)}
	}
}

// goOn does what the server does when a job is suspended. It says whether the wait is over.
func (i *inline) goOn(ctx context.Context, job *inlineJob, s *suspension) (bool, error) {
	for _, each := range s.before {
		_, err := i.answer(ctx, each)
		if each[0] != "DQ.ADD" && err != nil { // children's errors are in their results
			return false, err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch s.rest[0] {
	case "AWAIT":
		if _, isSet := job.steps[s.rest[1]]; !isSet {
			job.awaits = s.rest[1]
			return false, nil
		}
	case "AFTER":
		results, err := i.endings(s.rest[1:])
		if err != nil {
			return false, err
		}
		job.results = results
	}
	return true, nil
}

// wait is for [Wait].
func (i *inline) wait(ctx context.Context, id string) (ending, error) {
	i.mu.Lock()
	job := i.jobs[id]
	defer i.mu.Unlock()
	if job == nil {
		return ending{id: id, outcome: OutcomeUnknown}, nil
	}
	if job.end.outcome == "" {
		return ending{}, fmt.Errorf("dq: job %s has not ended, and nothing goes on while it is waited for", id)
	}
	return job.end, ctx.Err()
}
