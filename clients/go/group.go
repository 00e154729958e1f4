package dq

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

// QueueGroup is one group of a queue, such as a tenant, on each of the queue's shards.
//
// What changes it returns false where the server's ACL denies this user the command, which is logged once.
type QueueGroup struct {
	queue *Queue
	name  string
}

// GroupSettings are what a group has of its own, instead of the queue's. For [QueueGroup.Set], a nil field stays as it
// is; in [GroupStats], the queue's setting holds. 0 is no limit.
type GroupSettings struct {
	Weight *int  // how many deliveries its turn lasts
	Max    *int  // how many of its jobs may run at a time
	Rate   *Rate // how many may begin in a window
	MaxLen *int  // how many jobs it may have
}

// GroupStats are a group's settings, and its figures.
type GroupStats struct {
	GroupSettings
	// Paused: the group is passed over until PausedUntil (zero: until it is resumed).
	Paused      bool
	PausedUntil time.Time
	Waiting     int // delayed and ready jobs
	Reserved    int
	RateUsed    int64 // the cost of the deliveries in the current window of its rate
}

// Group is one group of the queue. It sends nothing.
func (q *Queue) Group(name string) *QueueGroup { return &QueueGroup{q, name} }

// Name returns the group's name.
func (g *QueueGroup) Name() string { return g.name }

// Set gives the group the settings that are not nil, on each shard.
func (g *QueueGroup) Set(ctx context.Context, s GroupSettings) (bool, error) {
	rest := words{named("group", g.name)}
	for _, each := range []struct {
		name        string
		value       *int
		first, last int64
	}{{"WEIGHT", s.Weight, 1, 1000}, {"MAX", s.Max, 0, math.MaxInt64}, {"MAXLEN", s.MaxLen, 0, math.MaxInt64}} {
		if each.value != nil {
			rest = rest.add(each.name, between(each.name, int64(*each.value), "", each.first, each.last))
		}
	}
	if rest = rest.rate("RATE", s.Rate); len(rest) == 1 {
		return false, &ConfigurationError{What: "Set needs a Weight, Max, Rate or MaxLen"}
	}
	return g.change(ctx, "DQ.GROUPSET", rest...)
}

// Clear takes its settings and its pause away: the queue's settings hold.
func (g *QueueGroup) Clear(ctx context.Context) (bool, error) {
	return g.change(ctx, "DQ.GROUPSET", named("group", g.name), "CLEAR")
}

// Pause passes the group over for a duration, or (0) until [QueueGroup.Resume].
func (g *QueueGroup) Pause(ctx context.Context, d time.Duration) (bool, error) {
	var rest words
	if d != 0 {
		rest = words{wait("a pause", d)}
	}
	return g.change(ctx, "DQ.PAUSE", rest.add("GROUP", named("group", g.name))...)
}

// Resume ends its pause.
func (g *QueueGroup) Resume(ctx context.Context) (bool, error) {
	return g.change(ctx, "DQ.RESUME", "GROUP", named("group", g.name))
}

func (g *QueueGroup) change(ctx context.Context, command string, rest ...any) (bool, error) {
	_, err := g.queue.each(ctx, command, rest...)
	if !trouble.IsForbidden(err) {
		return err == nil, err
	}
	if _, isSaid := g.queue.denied.LoadOrStore(command, true); !isSaid {
		guard.Log(slog.Default(), slog.LevelWarn, "dq: the server refuses "+command+" of a group: nothing is changed",
			"queue", g.queue.name, "error", err.Error())
	}
	return false, nil
}

// Stats returns its settings (of the first shard that has it) and its figures. The error is [ErrNotFound] if it has
// neither settings nor jobs.
func (g *QueueGroup) Stats(ctx context.Context) (*GroupStats, error) {
	replies, err := g.queue.each(ctx, "DQ.GROUPGET", named("group", g.name))
	if err != nil {
		return nil, err
	}
	var found *GroupStats
	var pauses Stats
	for _, reply := range replies {
		if reply == nil {
			continue
		}
		fields := resp.Map(reply)
		if found == nil {
			found = &GroupStats{GroupSettings: groupSettingsOf(fields)}
		}
		found.Waiting += int(resp.Int(fields["waiting"]))
		found.Reserved += int(resp.Int(fields["reserved"]))
		found.RateUsed += resp.Int(fields["rate-used"])
		pauses.addPause(resp.Int(fields["paused"]))
		found.Paused, found.PausedUntil = pauses.Paused, pauses.PausedUntil
	}
	if found == nil {
		return nil, ErrNotFound
	}
	return found, nil
}

func groupSettingsOf(fields map[string]any) GroupSettings {
	number := func(name string) *int {
		if fields[name] == nil {
			return nil
		}
		n := int(resp.Int(fields[name]))
		return &n
	}
	settings := GroupSettings{Weight: number("weight"), Max: number("max"), MaxLen: number("maxlen")}
	if pair := resp.List(fields["rate"]); len(pair) == 2 {
		settings.Rate = &Rate{int(resp.Int(pair[0])), resp.Duration(pair[1])}
	}
	return settings
}
