package shop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

type world struct {
	sync.Mutex
	mails    []string
	payments []int
	declines int
	mailed   chan struct{}
}

func (w *world) mail(to, text string) error {
	w.Lock()
	defer w.Unlock()
	w.mails = append(w.mails, to+": "+text)
	select {
	case w.mailed <- struct{}{}:
	default:
	}
	return nil
}

func (w *world) pay(order, _ int) error {
	if w.declines > 0 {
		w.declines--
		return errors.New("declined, try again later")
	}
	w.payments = append(w.payments, order)
	return nil
}

func start(t *testing.T) (*Shop, *world, *dqtest.Clock) {
	server := dqtest.Start(t)
	w := &world{mailed: make(chan struct{}, 1)}
	return &Shop{Queue: server.Queue(t, "shop"), Mail: w.mail, Pay: w.pay}, w, server.Clock
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func drain(t *testing.T, worker *dq.Worker) int {
	t.Helper()
	handled, err := worker.Drain(t.Context())
	must(t, err)
	return handled
}

func TestAReminderIn30Days(t *testing.T) {
	shop, world, clock := start(t)
	must(t, shop.StartTrial(t.Context(), "ann"))
	must(t, shop.StartTrial(t.Context(), "bob"))
	must(t, shop.Subscribe(t.Context(), "bob"))
	worker, err := shop.Worker(0)
	must(t, err)
	clock.Advance(29 * 24 * time.Hour)
	if n := drain(t, worker); n != 0 {
		t.Errorf("%d too early", n)
	}
	clock.Advance(24 * time.Hour)
	if n := drain(t, worker); n != 1 || world.mails[0] != "ann: Your trial ends tomorrow." {
		t.Errorf("%d: %v", n, world.mails)
	}
}

func TestAPaymentIsTriedAgainAfterAMinuteAnHourAndADay(t *testing.T) {
	shop, world, clock := start(t)
	world.declines = 3
	must(t, shop.Order(t.Context(), 17, 20))
	worker, err := shop.Worker(0)
	must(t, err)
	drain(t, worker)
	for _, step := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
		if len(world.payments) > 0 {
			t.Fatal("paid already")
		}
		clock.Advance(step * 9 / 10)
		if n := drain(t, worker); n != 0 {
			t.Errorf("%d before %v", n, step)
		}
		clock.Advance(step / 10)
		if n := drain(t, worker); n != 1 {
			t.Errorf("%d after %v", n, step)
		}
	}
	if len(world.payments) != 1 || world.payments[0] != 17 {
		t.Errorf("%v", world.payments)
	}
}

func TestAPaymentThatIsDeclinedFourTimesIsDead(t *testing.T) {
	shop, world, clock := start(t)
	world.declines = 4
	must(t, shop.Order(t.Context(), 17, 20))
	worker, err := shop.Worker(0)
	must(t, err)
	drain(t, worker)
	for _, more := clock.Next(); more; _, more = clock.Next() {
		drain(t, worker)
	}
	job, err := shop.Queue.Get(t.Context(), "charge:17")
	must(t, err)
	if job.State != dq.Dead || job.Reason != "*errors.errorString: declined, try again later" {
		t.Errorf("%s: %s", job.State, job.Reason)
	}
}

func TestADeployInTheMiddleOfAJob(t *testing.T) {
	shop, world, _ := start(t)
	must(t, shop.Export(t.Context(), 100_000))
	worker, err := shop.Worker(-1) // no time to drain
	must(t, err)
	ctx, deploy := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	<-world.mailed
	deploy()
	must(t, <-ended)
	job, err := shop.Queue.Get(t.Context(), "export")
	must(t, err)
	if job.State != dq.Ready || job.Attempts != 0 { // at once, not when its lease ends
		t.Errorf("%s after %d attempts", job.State, job.Attempts)
	}
}

func TestAHandlerWithoutAServer(t *testing.T) {
	var shop Shop
	w := &world{}
	shop.Mail, shop.Pay = w.mail, w.pay
	charge := dq.Typed(shop.charge)
	must(t, charge(t.Context(), dq.TestJob{Data: payment{17, 20}}.Job()))
	if len(w.payments) != 1 {
		t.Errorf("%v", w.payments)
	}
	run, err := dq.TestJob{Data: payment{18, 0}}.Run(t.Context(), dq.Handler{Do: charge, Attempts: 4})
	must(t, err)
	if run.State != dq.Dead || run.Attempts != 1 || run.Reason != "nothing to pay" {
		t.Errorf("%+v", run)
	}
}
