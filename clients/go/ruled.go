package dq

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"github.com/redis-dq/redis-dq/clients/go/internal/guard"
	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
	"github.com/redis-dq/redis-dq/clients/go/internal/trouble"
)

// Rules beside handlers: each worker says them when it starts.

func (w *Worker) sayRules() {
	for _, h := range w.ruled {
		for troubles := 1; !w.isDraining(); troubles++ {
			err := w.sayRule(h)
			if err == nil {
				break
			}
			w.trouble(err)
			w.rest(trouble.Pause(troubles))
		}
	}
}

// sayRule adds the job of a handler's rule. One that is over, finds no room or may not be added is said in the log; what
// else the server refuses would be missed when the job should run.
func (w *Worker) sayRule(h *Handler) error {
	rule := *h.Rule
	rule.ID, rule.Kind = cmp.Or(rule.ID, h.Kind), cmp.Or(h.Kind, rule.Kind)
	call, err := w.first.ruleCall(w.base, rule.Data, &rule.RuleOptions, rule.when())
	if err != nil {
		return &ConfigurationError{fmt.Sprintf("the rule of handler %q", rule.ID), err}
	}
	_, err = w.first.do(w.base, call)
	switch said := resp.Said(err); {
	case trouble.IsForbidden(err):
		w.off("DQ.ADD", "the rules of handlers are not said", err)
	case strings.Contains(said, "UNTIL is before the first occurrence"):
		guard.Log(w.logger, slog.LevelInfo, "dq: a rule is over", "job", rule.ID, "queue", w.first.name)
	case strings.HasPrefix(said, "MAX"), strings.HasPrefix(said, "OOM"):
		guard.Log(w.logger, slog.LevelError, "dq: a rule is not said until the next start", "job", rule.ID, "queue", w.first.name, "error", said)
	case said != "" && !trouble.Passes(err) && fatal(err) == nil:
		return &ConfigurationError{"a handler's rule cannot be said", err}
	default:
		return err
	}
	return nil
}
