// Package shop is a small program that uses dq: a reminder before a trial ends, payments that are retried, exports that
// take long, and gifts that need approval.
package shop

import (
	"context"
	"errors"
	"fmt"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

const month = 30 * 24 * time.Hour

// Shop reaches the world only by Mail and Pay, which tests replace.
type Shop struct {
	Queue *dq.Queue
	Mail  func(to, text string) error
	Pay   func(order, amount int) error
}

type (
	trial   struct{ Customer string }
	payment struct{ Order, Amount int }
	export  struct{ Pages int }
)

var (
	reminders = dq.NewKind[trial]("remind", dq.JobOptions{Delay: month})
	charges   = dq.NewKind[payment]("charge")
	exports   = dq.NewKind[export]("export", dq.JobOptions{ID: "export"})
)

// once leaves out that a job is there: whoever asks twice wants it once.
func once(_ string, err error) error {
	if errors.Is(err, dq.ErrExists) {
		return nil
	}
	return err
}

// StartTrial schedules a reminder in a month.
func (s *Shop) StartTrial(ctx context.Context, customer string) error {
	return once(reminders.Add(ctx, s.Queue, trial{customer}, &dq.JobOptions{ID: "trial:" + customer}))
}

// Subscribe cancels the reminder.
func (s *Shop) Subscribe(ctx context.Context, customer string) error {
	_, err := s.Queue.Delete(ctx, "trial:"+customer)
	return err
}

// Order charges for an order.
func (s *Shop) Order(ctx context.Context, number, amount int) error {
	return once(charges.Add(ctx, s.Queue, payment{number, amount}, &dq.JobOptions{ID: fmt.Sprintf("charge:%d", number)}))
}

// Export mails the books to the accountants.
func (s *Shop) Export(ctx context.Context, pages int) error {
	return once(exports.Add(ctx, s.Queue, export{pages}, nil))
}

// Worker handles all of these jobs.
func (s *Shop) Worker(drain time.Duration) (*dq.Worker, error) {
	return dq.NewWorker(dq.WorkerConfig{
		Queues: []*dq.Queue{s.Queue},
		Handlers: []dq.Handler{
			reminders.Handler(s.remind),
			charges.Handler(s.charge, dq.Handler{
				Attempts: 4, Backoff: []time.Duration{time.Minute, time.Hour, 24 * time.Hour},
			}),
			exports.Handler(s.export),
			gifts.Returning(s.gift),
		},
		Drain: drain,
	})
}

func (s *Shop) remind(_ context.Context, _ *dq.Job, t trial) error {
	return s.Mail(t.Customer, "Your trial ends tomorrow.")
}

func (s *Shop) charge(_ context.Context, _ *dq.Job, p payment) error {
	if p.Amount <= 0 {
		return dq.GiveUp(errors.New("nothing to pay"))
	}
	return s.Pay(p.Order, p.Amount)
}

func (s *Shop) export(ctx context.Context, _ *dq.Job, e export) error {
	for page := range e.Pages {
		if err := s.Mail("accounting", fmt.Sprint("page ", page)); err != nil {
			return err
		}
		select {
		case <-ctx.Done(): // the worker stops: another one starts over
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
