package dq

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const (
	saidHeader  = "dq:said" // when a rule was said last, and the checksum of what was said
	recentRule  = 10 * time.Minute
	rulesAtOnce = 1000
	mostRules   = 10 // in a line of the log
)

// removeScript removes a job that is still as it was read: one that is said again has another payload.
const removeScript = `
local rule = redis.call('DQ.GET', KEYS[1], ARGV[1]) or {}
for at = 1, #rule, 2 do
  if rule[at] == 'payload' and rule[at + 1] == ARGV[2] then
    return redis.call('DQ.DEL', KEYS[1], 'UNRESERVED', 'IDS', 1, ARGV[1])
  end
end
return 0
`

// NewRule is a rule of a [Handler], or of [Queue.Rules], where ID and First must not be set: Every or Cron, and what those
// methods take besides.
type NewRule struct {
	Every time.Duration
	Cron  string
	Data  any
	RuleOptions
}

func (r *NewRule) when() words {
	if r.Cron != "" {
		return words{"CRON", r.Cron}.value("TZ", r.TZ, r.TZ != "")
	}
	return words{"EVERY", between("every", resp.Ms(r.Every), " ms", 1, latest)}
}

// RulesOptions are the options of [Queue.Rules].
type RulesOptions struct {
	// Prune removes the program's other rules, but none that is reserved, and none that was said within ten minutes, as
	// by workers of the version before. For a deploy.
	Prune      bool
	AllowEmpty bool // prunes even if there are no rules
	DryRun     bool // changes nothing
}

// RuleChanges is what [Queue.Rules] did, or would do: names of rules, in order.
type RuleChanges struct {
	Added, Changed, Kept, Removed []string
	Unknown                       []string // rules of the program that the set does not have, and that stay
}

type saidRule struct {
	name, id, sum string
	call          words
}

// Rules says all recurring jobs of a program, by names, which have no colon: it adds those that are new, and changes those
// that differ. The id of each is program:name. A worker's start says its rules, and logs which others there are; a deploy
// prunes them.
func (q *Queue) Rules(ctx context.Context, program string, rules map[string]NewRule, options *RulesOptions) (*RuleChanges, error) {
	o := RulesOptions{}
	if options != nil {
		o = *options
	}
	if err := (words{between("program", int64(len(program)), " bytes", 1, 1022)}).mistake(); err != nil {
		return nil, err
	}
	now := time.Now()
	said, before, err := q.sayRules(ctx, program, rules, o.DryRun, now)
	if err != nil {
		return nil, err
	}
	made := &RuleChanges{}
	for at, each := range said {
		switch sum := before[at]; {
		case sum == nil:
			made.Added = append(made.Added, each.name)
		case *sum == each.sum:
			made.Kept = append(made.Kept, each.name)
		default:
			made.Changed = append(made.Changed, each.name)
		}
	}
	others, err := q.rulesOf(ctx, program)
	if err != nil {
		return nil, err
	}
	for name := range rules {
		delete(others, program+":"+name)
	}
	if o.Prune && (len(rules) > 0 || o.AllowEmpty) {
		if made.Removed, err = q.pruned(ctx, others, now, o.DryRun); err != nil {
			return nil, err
		}
	}
	for _, id := range made.Removed {
		delete(others, id)
	}
	name := func(ids []string) []string {
		for at := range ids {
			ids[at] = ids[at][len(program)+1:]
		}
		slices.Sort(ids)
		return ids
	}
	made.Removed, made.Unknown = name(made.Removed), name(slices.Collect(maps.Keys(others)))
	q.warnOfRules(program, made.Unknown)
	return made, nil
}

func (q *Queue) warnOfRules(program string, names []string) {
	if len(names) > 0 {
		guard.Log(slog.Default(), slog.LevelWarn, "dq: the queue has rules of this program that are not in this set",
			"queue", q.name, "program", program, "count", len(names), "rules", names[:min(len(names), mostRules)])
	}
}

// sayRules returns for each rule the checksum that was said before, nil if the rule is new.
func (q *Queue) sayRules(
	ctx context.Context, program string, rules map[string]NewRule, isDry bool, now time.Time,
) (said []saidRule, before []*string, err error) {
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		made, err := q.said(ctx, program, name, rules[name], now)
		if err != nil {
			return nil, nil, err
		}
		said = append(said, made)
	}
	if len(said) == 0 {
		return nil, nil, nil
	}
	gets, calls := make([]words, len(said)), make([]words, len(said))
	for at, each := range said {
		gets[at], calls[at] = words{"DQ.GET", q.key(each.id), each.id}, each.call
	}
	jobs, err := q.all(ctx, gets)
	if err != nil {
		return nil, nil, err
	}
	for _, job := range jobs {
		if job == nil {
			before = append(before, nil)
			continue
		}
		_, sum := stampOf(resp.Map(job))
		before = append(before, &sum)
	}
	if !isDry {
		_, err = q.all(ctx, calls)
	}
	return said, before, err
}

func (q *Queue) said(ctx context.Context, program, name string, rule NewRule, now time.Time) (saidRule, error) {
	none := saidRule{}
	if name == "" || strings.Contains(name, ":") {
		return none, &ConfigurationError{What: fmt.Sprintf("the name of a rule is not empty and has no colon, not %q", name)}
	}
	if (rule.Every == 0) == (rule.Cron == "") || rule.ID != "" || !rule.First.IsZero() {
		return none, &ConfigurationError{What: fmt.Sprintf("rule %q needs Every or Cron, and neither ID nor First", name)}
	}
	when, options := rule.when(), rule.RuleOptions
	options.ID = program + ":" + name
	var plain []byte
	var err error
	guard.Run(func() (failure error) {
		plain, failure = writeEnvelope(rule.Data, rule.Kind, rule.Headers)
		return failure
	}, func(failure error) { err = failure })
	if err != nil {
		return none, err
	}
	terms := options.limits(options.JobOptions.words(when)).texts()
	sum := fmt.Sprintf("%x", crc32.ChecksumIEEE(append(plain, strings.Join(terms, "\x00")...)))
	headers := map[string]string{}
	maps.Copy(headers, rule.Headers)
	headers[saidHeader] = fmt.Sprintf("%d %s", now.UnixMilli(), sum)
	options.Headers = headers
	call, err := q.ruleCall(ctx, rule.Data, &options, when)
	return saidRule{name, options.ID, sum, call}, err
}

// rulesOf returns the ids of the program's rules. What has another colon is of a program whose name is longer.
func (q *Queue) rulesOf(ctx context.Context, program string) (map[string]struct{}, error) {
	pattern := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(program) + ":*"
	found := map[string]struct{}{}
	for id, err := range q.IDs(ctx, &ScanOptions{Match: pattern, Recurring: true, Count: rulesAtOnce}) {
		if err != nil {
			return nil, err
		}
		if !strings.Contains(id[len(program)+1:], ":") {
			found[id] = struct{}{}
		}
	}
	return found, nil
}

// pruned returns the ids of the jobs that were removed, or would be.
func (q *Queue) pruned(ctx context.Context, ids map[string]struct{}, now time.Time, isDry bool) ([]string, error) {
	var removed []string
	for some := range slices.Chunk(slices.Collect(maps.Keys(ids)), rulesAtOnce) {
		gets := make([]words, len(some))
		for at, id := range some {
			gets[at] = words{"DQ.GET", q.key(id), id}
		}
		jobs, err := q.all(ctx, gets)
		if err != nil {
			return removed, err
		}
		for at, id := range some {
			if jobs[at] == nil || !isOldRule(resp.Map(jobs[at]), now) {
				continue
			}
			var gone any = int64(1)
			if !isDry {
				payload := resp.Bytes(resp.Map(jobs[at])["payload"])
				if gone, err = q.do(ctx, words{"EVAL", removeScript, 1, q.key(id), id, payload}); err != nil {
					return removed, err
				}
			}
			if gone != int64(0) {
				removed = append(removed, id)
			}
		}
	}
	return removed, nil
}

func isOldRule(job map[string]any, now time.Time) bool {
	at, _ := stampOf(job)
	return !at.IsZero() && now.Sub(at) >= recentRule && resp.Text(job["state"]) != string(Leased)
}

// stampOf returns when [Queue.Rules] said the job, and its checksum; zero if something else added it.
func stampOf(job map[string]any) (time.Time, string) {
	found := readEnvelope(resp.Bytes(job["payload"]))
	if found == nil {
		return time.Time{}, ""
	}
	ms, sum, _ := strings.Cut(found.headers[saidHeader], " ")
	at, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || at < 0 || at > latest {
		return time.Time{}, ""
	}
	return time.UnixMilli(at), sum
}
