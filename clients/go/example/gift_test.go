package shop

import (
	"testing"
	"time"
)

func TestAGiftWaitsForItsApproval(t *testing.T) {
	ctx := t.Context()
	shop, world, clock := start(t)
	worker, err := shop.Worker(time.Second)
	must(t, err)
	world.declines = 1
	for number, to := range []string{"ann", "bob"} {
		must(t, shop.Give(ctx, number, to, 50))
	}
	drain(t, worker)
	clock.Advance(time.Minute) // the payment that was declined is tried again
	drain(t, worker)
	if len(world.payments) != 2 || len(world.mails) != 0 {
		t.Fatal(world.payments, world.mails)
	}
	if isFirst, err := shop.Approve(ctx, 0, "eve"); !isFirst || err != nil {
		t.Fatal(isFirst, err)
	}
	drain(t, worker)
	clock.Advance(patience)
	drain(t, worker)
	for number, want := range []string{"approved by eve", "nobody approved it"} {
		if said, err := shop.Gift(ctx, number); said != want || err != nil {
			t.Errorf("%q, %v", said, err)
		}
	}
	if len(world.payments) != 2 || len(world.mails) != 1 {
		t.Error(world.payments, world.mails)
	}
}
