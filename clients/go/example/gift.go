package shop

import (
	"context"
	"errors"
	"fmt"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
)

const patience = 3 * 24 * time.Hour

type gift struct {
	To     string
	Amount int
}

var gifts = dq.NewKindReturning[gift, string]("gift", dq.JobOptions{Keep: month})

// Give charges for a gift, waits until somebody approves it, and mails it.
func (s *Shop) Give(ctx context.Context, number int, to string, amount int) error {
	return once(gifts.Add(ctx, s.Queue, gift{to, amount}, &dq.JobOptions{ID: giftID(number)}))
}

// Approve approves a gift, whatever its worker does meanwhile. False: it was approved before.
func (s *Shop) Approve(ctx context.Context, number int, by string) (bool, error) {
	return s.Queue.Signal(ctx, giftID(number), "approved", by)
}

// Gift returns what became of a gift.
func (s *Shop) Gift(ctx context.Context, number int) (string, error) {
	return gifts.Result(ctx, s.Queue, giftID(number))
}

func giftID(number int) string { return fmt.Sprintf("gift:%d", number) }

func (s *Shop) gift(ctx context.Context, job *dq.Job, g gift) (string, error) {
	_, err := dq.Step(ctx, job, "charge", func(context.Context) (bool, error) { return true, s.Pay(g.Amount, g.Amount) })
	if err != nil {
		return "", err
	}
	by, err := dq.WaitSignal[string](ctx, job, "approved", patience)
	if errors.Is(err, context.DeadlineExceeded) {
		return "nobody approved it", nil
	}
	if err != nil {
		return "", err
	}
	_, err = dq.Step(ctx, job, "mail", func(context.Context) (bool, error) { return true, s.Mail(g.To, "A gift for you") })
	return "approved by " + by, err
}
